//! Settings of the learning-rate schedules; the curves are in `crate/src/schedule/curve.rs`.

use serde::{Deserialize, Serialize};

use super::declare::settings;
use super::rules::{Rules, is_positive_f32};
use crate::error::Fault;

/// Value of a start step that is not planned.
pub(crate) const NO_START: i64 = -1;

/// Learning rate as a function of the step. B is the run's `learning_rate`, the peak ([example](crate::config)).
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

settings! {
    /// Settings of `constant`.
    pub struct ConstantSchedule {
        /// Number of steps of linear warmup.
        warmup_steps: u64 = 0,
        /// Start the warmup at 0: step 1 has the rate 0, otherwise the peak rate divided by `warmup_steps`.
        warmup_from_zero: bool = true,
    }
}

settings! {
    /// Settings of `cosine` and `linear`.
    pub struct FallingSchedule {
        /// Number of steps of linear warmup.
        warmup_steps: u64 = 0,
        /// Start the warmup at 0: step 1 has the rate 0, otherwise the peak rate divided by `warmup_steps`.
        warmup_from_zero: bool = true,
        /// Number of steps after which the minimum is reached, above `warmup_steps`; the run's `steps` if absent. The
        /// last of them is one step of the curve above the minimum.
        total_steps: u64 = 0,
        /// Rate after `total_steps`, from 0 to the peak rate.
        min_learning_rate: f64 = 0.0,
    }
}

settings! {
    /// Settings of `wsd`.
    pub struct WsdSchedule {
        /// Number of steps of linear warmup.
        warmup_steps: u64 = 0,
        /// Start the warmup at 0: step 1 has the rate 0, otherwise the peak rate divided by `warmup_steps`.
        warmup_from_zero: bool = true,
        /// Number of steps of the decay; at least 1 is required where a decay starts.
        decay_steps: u64 = 0,
        /// Step after which the decay starts, at least `warmup_steps`; −1 plans none.
        decay_start_step: i64 = NO_START,
        /// Start the decay at once, in a new run or at a resume.
        start_decay: bool = false,
        /// Form of the decay. `rsqrt` is another name of `harmonic`.
        decay_type: DecayType = DecayType::Harmonic,
        /// Rate after the decay, at most the peak rate, and above 0 for harmonic and exponential; a tenth of the peak
        /// rate if absent. The last step of the decay is one step of the curve above it.
        min_learning_rate: Option<f64> = None,
    }
}

settings! {
    /// Settings of `infinite`.
    #[doc(hidden)]
    pub struct InfiniteSchedule {
        /// Number of steps of linear warmup.
        warmup_steps: u64 = 0,
        /// Start the warmup at 0: step 1 has the rate 0, otherwise the peak rate divided by `warmup_steps`.
        warmup_from_zero: bool = true,
        /// Number of steps from the peak rate to the constant rate.
        cooldown_steps: u64 = 0,
        /// Constant rate, above 0 and at most the peak rate. Required with a cooldown; without one it is the peak rate.
        constant_learning_rate: Option<f64> = None,
        /// Number of steps of the annealing; at least 1, or `tau`, is required where an annealing starts.
        annealing_steps: u64 = 0,
        /// Alternative to `annealing_steps`, > 0, for exponential annealing: it takes tau + start steps, where start is
        /// the step after which it starts.
        tau: Option<f64> = None,
        /// Step after which the annealing starts, at least `warmup_steps` + `cooldown_steps`; −1 plans none.
        annealing_start_step: i64 = NO_START,
        /// Start the annealing at once, in a new run or at a resume.
        start_annealing: bool = false,
        /// Form of the annealing: `exponential` or `harmonic`.
        annealing_type: DecayType = DecayType::Exponential,
        /// Rate after the annealing, above 0 and at most the constant rate; a tenth of the constant rate if absent. The
        /// last step of the annealing is one step of the curve above it.
        min_learning_rate: Option<f64> = None,
    }
}

/// Form of a decay from h to the minimum μ, for x from 0 to 1 ([example](crate::config)).
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

impl Default for ScheduleConfig {
    fn default() -> Self {
        Self::Constant(ConstantSchedule::default())
    }
}

impl DecayType {
    /// True if the form divides by its minimum.
    fn divides(self) -> bool {
        matches!(self, Self::Harmonic | Self::Exponential)
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

    /// The number of steps of an annealing that starts after step `start`.
    pub(crate) fn annealing_length(&self, start: u64) -> f64 {
        if self.annealing_steps > 0 {
            self.annealing_steps as f64
        } else {
            self.tau.unwrap_or(0.0) + start as f64
        }
    }
}

/// Rule of the number of steps of a decay that starts.
pub(crate) const DECAY_LENGTH: &str = "an integer ≥ 1 where a decay starts";
/// Rule of the number of steps of an annealing that starts.
pub(crate) const ANNEALING_LENGTH: &str = "an integer ≥ 1 (or tau) where the annealing starts";

/// Checks the keys of one schedule.
struct Checks<'a> {
    rules: Rules<'a>,
    learning_rate: f64,
}

impl Checks<'_> {
    /// Checks 0 ≤ μ ≤ `most`, and μ > 0 if the form divides by it.
    fn minimum(&mut self, rate: Option<f64>, most: f64, divides: bool) {
        let Some(rate) = rate else { return };
        let fits = rate.is_finite() && rate >= 0.0 && rate <= most && !(divides && rate == 0.0);
        let above = if divides { "> 0" } else { "≥ 0" };
        let rule = format!("finite, {above} and ≤ {most}");
        self.rules.check(fits, "min_learning_rate", rule, rate);
    }

    fn start(&mut self, key: &str, start: i64, earliest: u64) {
        let fits = start == NO_START || u64::try_from(start).is_ok_and(|start| start >= earliest);
        let rule = format!("-1 or an integer ≥ {earliest}");
        self.rules.check(fits, key, rule, start);
    }

    fn wsd(&mut self, s: &WsdSchedule) {
        self.minimum(
            s.min_learning_rate,
            self.learning_rate,
            s.decay_type.divides(),
        );
        self.start("decay_start_step", s.decay_start_step, s.warmup_steps);
        let starts = s.start_decay || s.decay_start_step != NO_START;
        let fits = !starts || s.decay_steps > 0;
        self.rules
            .check(fits, "decay_steps", DECAY_LENGTH, "absent");
    }

    fn infinite(&mut self, s: &InfiniteSchedule) {
        let (key, peak) = ("constant_learning_rate", self.learning_rate);
        match (s.constant_learning_rate, s.cooldown_steps) {
            (None, cooldown) => {
                let rule = "a rate, since there is a cooldown";
                self.rules.check(cooldown == 0, key, rule, "absent");
            }
            (Some(rate), 0) if rate != peak => {
                let rule = format!("absent or {peak} without a cooldown");
                self.rules.check(false, key, rule, rate);
            }
            (Some(rate), _) => {
                let fits = is_positive_f32(rate) && rate <= peak;
                let rule = format!("> 0 in f32 and ≤ {peak}");
                self.rules.check(fits, key, rule, rate);
            }
        }
        self.rules.check(
            s.annealing_type.divides(),
            "annealing_type",
            "exponential or harmonic",
            format!("{:?}", s.annealing_type),
        );
        let most = s.constant_learning_rate.map_or(peak, |rate| rate.min(peak));
        self.minimum(s.min_learning_rate, most, true);
        let earliest = s.warmup_steps.saturating_add(s.cooldown_steps);
        self.start("annealing_start_step", s.annealing_start_step, earliest);
        if let Some(tau) = s.tau {
            let exponential = s.annealing_type == DecayType::Exponential;
            self.rules.check(
                tau.is_finite() && tau > 0.0 && exponential && s.annealing_steps == 0,
                "tau",
                "finite, > 0, with exponential annealing and without annealing_steps",
                tau,
            );
        } else {
            let starts = s.start_annealing || s.annealing_start_step != NO_START;
            let fits = !starts || s.annealing_steps > 0;
            self.rules
                .check(fits, "annealing_steps", ANNEALING_LENGTH, "absent");
        }
    }
}

#[doc(hidden)]
impl ScheduleConfig {
    /// The number of steps of the warmup, and whether it starts at 0.
    pub(crate) fn warmup(&self) -> (u64, bool) {
        match self {
            Self::Constant(s) => (s.warmup_steps, s.warmup_from_zero),
            Self::Cosine(s) | Self::Linear(s) => (s.warmup_steps, s.warmup_from_zero),
            Self::Wsd(s) => (s.warmup_steps, s.warmup_from_zero),
            Self::Infinite(s) => (s.warmup_steps, s.warmup_from_zero),
        }
    }

    /// The rules that these values break at the given peak rate.
    pub fn faults(&self, learning_rate: f64) -> Vec<Fault> {
        let mut checks = Checks {
            rules: Rules::of("schedule"),
            learning_rate,
        };
        match self {
            Self::Constant(_) => {}
            Self::Cosine(s) | Self::Linear(s) => {
                let rule = format!("an integer > warmup_steps {}", s.warmup_steps);
                let fits = s.total_steps > s.warmup_steps;
                checks.rules.check(fits, "total_steps", rule, s.total_steps);
                checks.minimum(Some(s.min_learning_rate), learning_rate, false);
            }
            Self::Wsd(s) => checks.wsd(s),
            Self::Infinite(s) => checks.infinite(s),
        }
        checks.rules.faults
    }
}
