//! Settings of the learning-rate schedules; the curves are in `crate/src/schedule/curve.rs`.

use serde::{Deserialize, Serialize};

use super::rules::is_positive_f32;
use crate::error::Fault;

/// Value of a start step that is not planned.
pub(crate) const NO_START: i64 = -1;

/// Learning rate as a function of the step. B is the run's `learning_rate`, the peak.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ScheduleConfig {
    /// The peak rate B after a warmup.
    Constant(ConstantSchedule),
    /// From B to the minimum along half a cosine.
    Cosine(FallingSchedule),
    /// From B to the minimum along a straight line.
    Linear(FallingSchedule),
    /// Warmup, stable, decay: the rate stays at B until a decay starts.
    Wsd(WsdSchedule),
    /// Warmup, cooldown along half a cosine, constant rate, annealing.
    Infinite(InfiniteSchedule),
}

/// Settings of `constant`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ConstantSchedule {
    /// Number of steps of linear warmup.
    pub warmup_steps: u64,
    /// Start the warmup at 0: step 1 has the rate 0, otherwise the peak rate divided by `warmup_steps`.
    pub warmup_from_zero: bool,
}

/// Settings of `cosine` and `linear`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct FallingSchedule {
    /// Number of steps of linear warmup.
    pub warmup_steps: u64,
    /// Start the warmup at 0: step 1 has the rate 0, otherwise the peak rate divided by `warmup_steps`.
    pub warmup_from_zero: bool,
    /// Number of steps after which the minimum is reached, above `warmup_steps`; the run's `steps` if absent. The last of them is one step
    /// of the curve above the minimum.
    pub total_steps: u64,
    /// Rate after `total_steps`, from 0 to the peak rate.
    pub min_learning_rate: f64,
}

/// Settings of `wsd`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct WsdSchedule {
    /// Number of steps of linear warmup.
    pub warmup_steps: u64,
    /// Start the warmup at 0: step 1 has the rate 0, otherwise the peak rate divided by `warmup_steps`.
    pub warmup_from_zero: bool,
    /// Number of steps of the decay; at least 1 is required where a decay starts.
    pub decay_steps: u64,
    /// Step after which the decay starts, at least `warmup_steps`; −1 plans none.
    pub decay_start_step: i64,
    /// Start the decay at once, in a new run or at a resume.
    pub start_decay: bool,
    /// Form of the decay. `rsqrt` is another name of `harmonic`.
    pub decay_type: DecayType,
    /// Rate after the decay, at most the peak rate, and above 0 for harmonic and exponential; a tenth of the peak rate if absent. The last
    /// step of the decay is one step of the curve above it.
    pub min_learning_rate: Option<f64>,
}

/// Settings of `infinite`.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct InfiniteSchedule {
    /// Number of steps of linear warmup.
    pub warmup_steps: u64,
    /// Start the warmup at 0: step 1 has the rate 0, otherwise the peak rate divided by `warmup_steps`.
    pub warmup_from_zero: bool,
    /// Number of steps from the peak rate to the constant rate.
    pub cooldown_steps: u64,
    /// Constant rate, above 0 and at most the peak rate. Required with a cooldown; without one it is the peak rate.
    pub constant_learning_rate: Option<f64>,
    /// Number of steps of the annealing; at least 1, or `tau`, is required where an annealing starts.
    pub annealing_steps: u64,
    /// Alternative to `annealing_steps`, > 0, for exponential annealing: it takes tau + start steps, where start is the step after which it
    /// starts.
    pub tau: Option<f64>,
    /// Step after which the annealing starts, at least `warmup_steps` + `cooldown_steps`; −1 plans none.
    pub annealing_start_step: i64,
    /// Start the annealing at once, in a new run or at a resume.
    pub start_annealing: bool,
    /// Form of the annealing: `exponential` or `harmonic`.
    pub annealing_type: DecayType,
    /// Rate after the annealing, above 0 and at most the constant rate; a tenth of the constant rate if absent. The last step of the
    /// annealing is one step of the curve above it.
    pub min_learning_rate: Option<f64>,
}

/// Form of a decay from h to the minimum μ, for x from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DecayType {
    /// 1 / (x/μ + (1 − x)/h). `rsqrt` is accepted as another name.
    #[serde(alias = "rsqrt")]
    #[cfg_attr(feature = "schema", schemars(extend("alias" = "rsqrt")))]
    Harmonic,
    /// h·(μ/h)^x.
    Exponential,
    /// μ + (h − μ)(1 − x).
    Linear,
    /// μ + (h − μ)(1 − √x).
    OneMinusSqrt,
}

impl Default for ConstantSchedule {
    fn default() -> Self {
        Self {
            warmup_steps: 0,
            warmup_from_zero: true,
        }
    }
}

impl Default for FallingSchedule {
    fn default() -> Self {
        Self {
            warmup_steps: 0,
            warmup_from_zero: true,
            total_steps: 0,
            min_learning_rate: 0.0,
        }
    }
}

impl Default for WsdSchedule {
    fn default() -> Self {
        Self {
            warmup_steps: 0,
            warmup_from_zero: true,
            decay_steps: 0,
            decay_start_step: NO_START,
            start_decay: false,
            decay_type: DecayType::Harmonic,
            min_learning_rate: None,
        }
    }
}

impl Default for InfiniteSchedule {
    fn default() -> Self {
        Self {
            warmup_steps: 0,
            warmup_from_zero: true,
            cooldown_steps: 0,
            constant_learning_rate: None,
            annealing_steps: 0,
            tau: None,
            annealing_start_step: NO_START,
            start_annealing: false,
            annealing_type: DecayType::Exponential,
            min_learning_rate: None,
        }
    }
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        Self::Constant(ConstantSchedule::default())
    }
}

#[doc(hidden)]
impl InfiniteSchedule {
    /// Returns h, the rate from which the annealing starts.
    pub fn constant_rate(&self, learning_rate: f64) -> f64 {
        if self.cooldown_steps == 0 {
            learning_rate
        } else {
            self.constant_learning_rate.unwrap_or(learning_rate)
        }
    }
}

/// Collects the faults of one schedule's keys.
struct Checks {
    faults: Vec<Fault>,
    learning_rate: f64,
}

impl Checks {
    fn refuse(&mut self, key: &str, rule: impl Into<String>, value: impl std::fmt::Display) {
        self.faults
            .push(Fault::new(format!("schedule.{key}"), rule, value));
    }

    /// Checks 0 ≤ μ ≤ `most`, and μ > 0 if the form divides by it.
    fn minimum(&mut self, rate: Option<f64>, most: f64, divides: bool) {
        let Some(rate) = rate else { return };
        let fits = rate.is_finite() && rate >= 0.0 && rate <= most && !(divides && rate == 0.0);
        if !fits {
            let above = if divides { "> 0" } else { "≥ 0" };
            self.refuse(
                "min_learning_rate",
                format!("finite, {above} and ≤ {most}"),
                rate,
            );
        }
    }

    fn total(&mut self, total_steps: u64, warmup_steps: u64) {
        if total_steps <= warmup_steps {
            self.refuse(
                "total_steps",
                format!("an integer > warmup_steps {warmup_steps}"),
                total_steps,
            );
        }
    }

    fn start(&mut self, key: &str, start: i64, earliest: u64) {
        if start != NO_START && u64::try_from(start).map_or(true, |start| start < earliest) {
            self.refuse(key, format!("-1 or an integer ≥ {earliest}"), start);
        }
    }

    fn wsd(&mut self, s: &WsdSchedule) {
        let divides = matches!(s.decay_type, DecayType::Harmonic | DecayType::Exponential);
        self.minimum(s.min_learning_rate, self.learning_rate, divides);
        self.start("decay_start_step", s.decay_start_step, s.warmup_steps);
        if (s.start_decay || s.decay_start_step != NO_START) && s.decay_steps == 0 {
            self.refuse(
                "decay_steps",
                "an integer ≥ 1 where a decay starts",
                "absent",
            );
        }
    }

    fn infinite(&mut self, s: &InfiniteSchedule) {
        match (s.constant_learning_rate, s.cooldown_steps) {
            (None, 0) => {}
            (None, _) => self.refuse(
                "constant_learning_rate",
                "a rate, since there is a cooldown",
                "absent",
            ),
            (Some(rate), 0) if rate != self.learning_rate => {
                self.refuse(
                    "constant_learning_rate",
                    format!("absent or {} without a cooldown", self.learning_rate),
                    rate,
                );
            }
            (Some(rate), _) if !(is_positive_f32(rate) && rate <= self.learning_rate) => {
                self.refuse(
                    "constant_learning_rate",
                    format!("> 0 in f32 and ≤ {}", self.learning_rate),
                    rate,
                );
            }
            _ => {}
        }
        if !matches!(
            s.annealing_type,
            DecayType::Harmonic | DecayType::Exponential
        ) {
            self.refuse(
                "annealing_type",
                "exponential or harmonic",
                format!("{:?}", s.annealing_type),
            );
        }
        let most = s
            .constant_learning_rate
            .map_or(self.learning_rate, |rate| rate.min(self.learning_rate));
        self.minimum(s.min_learning_rate, most, true);
        let earliest = s.warmup_steps.saturating_add(s.cooldown_steps);
        self.start("annealing_start_step", s.annealing_start_step, earliest);
        if let Some(tau) = s.tau {
            if !(tau.is_finite()
                && tau > 0.0
                && s.annealing_type == DecayType::Exponential
                && s.annealing_steps == 0)
            {
                self.refuse(
                    "tau",
                    "finite, > 0, with exponential annealing and without annealing_steps",
                    tau,
                );
            }
        } else if (s.start_annealing || s.annealing_start_step != NO_START)
            && s.annealing_steps == 0
        {
            self.refuse(
                "annealing_steps",
                "an integer ≥ 1 (or tau) where the annealing starts",
                "absent",
            );
        }
    }
}

#[doc(hidden)]
impl ScheduleConfig {
    /// Returns the number of steps of the warmup, and whether it starts at 0.
    pub(crate) fn warmup(&self) -> (u64, bool) {
        match self {
            Self::Constant(s) => (s.warmup_steps, s.warmup_from_zero),
            Self::Cosine(s) | Self::Linear(s) => (s.warmup_steps, s.warmup_from_zero),
            Self::Wsd(s) => (s.warmup_steps, s.warmup_from_zero),
            Self::Infinite(s) => (s.warmup_steps, s.warmup_from_zero),
        }
    }

    /// Returns the rules that these values break at the given peak rate.
    pub fn faults(&self, learning_rate: f64) -> Vec<Fault> {
        let mut checks = Checks {
            faults: Vec::new(),
            learning_rate,
        };
        match self {
            Self::Constant(_) => {}
            Self::Cosine(s) | Self::Linear(s) => {
                checks.total(s.total_steps, s.warmup_steps);
                checks.minimum(Some(s.min_learning_rate), learning_rate, false);
            }
            Self::Wsd(s) => checks.wsd(s),
            Self::Infinite(s) => checks.infinite(s),
        }
        checks.faults
    }
}
