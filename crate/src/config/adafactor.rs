//! Adafactor: its settings, and what it keeps (shaders/README.md, "Adafactor").

use serde::{Deserialize, Serialize};

use super::StateWord;
use super::hyperparameters::{
    BETA, FRACTION, NEGATIVE, NOT_NEGATIVE, POSITIVE, POSITIVE_F32, STOCHASTIC_ROUNDING,
    WEIGHT_DECAY,
};
use super::optimizer_kind::{Extent, Hyperparameter, Kept, KeptTensor, OptimizerKind, Range};
use super::rules::{RuleSettings, Rules, is_positive_f32};

/// Adafactor without a first moment (arXiv:1804.04235).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AdafactorConfig {
    /// Exponent, < 0: in step t a new statistic of g² has the weight t^decay_rate.
    pub decay_rate: f64,
    /// Maximum share of the old statistic, 0 ≤ β < 1: a new one has at least the weight 1 − beta2_cap.
    pub beta2_cap: f64,
    /// Maximum RMS of an update before the learning rate, > 0; a larger update is scaled down.
    pub clip_threshold: f64,
    /// Added to g²; ≥ 1e-30.
    pub eps1: f64,
    /// Minimum RMS of a parameter that `relative_step` uses, > 0.
    pub eps2: f64,
    /// Decoupled weight decay, ≥ 0: p ← (1 − rate · weight_decay) · p.
    pub weight_decay: f64,
    /// Multiply the learning rate by the RMS of the parameter, which is at least `eps2`.
    pub relative_step: bool,
    /// Write bf16 values with stochastic rounding; false rounds to nearest, which loses small updates.
    pub stochastic_rounding: bool,
}

impl Default for AdafactorConfig {
    fn default() -> Self {
        Self {
            decay_rate: -0.8,
            beta2_cap: 0.999,
            clip_threshold: 1.0,
            eps1: 1e-30,
            eps2: 1e-3,
            weight_decay: 0.01,
            relative_step: false,
            stochastic_rounding: true,
        }
    }
}

static DECAY_RATE: Hyperparameter = Hyperparameter::new(
    "decay_rate",
    NEGATIVE,
    Range("finite and < 0 in f32", |value| is_positive_f32(-value)),
);
static BETA2_CAP: Hyperparameter = Hyperparameter::new("beta2_cap", FRACTION, BETA);
static CLIP_THRESHOLD: Hyperparameter =
    Hyperparameter::new("clip_threshold", POSITIVE, POSITIVE_F32);
static EPS1: Hyperparameter = Hyperparameter::new(
    "eps1",
    NOT_NEGATIVE,
    Range("finite in f32 and ≥ 1e-30", |value| {
        (value as f32).is_finite() && value >= 1e-30
    }),
);
static EPS2: Hyperparameter = Hyperparameter::new("eps2", NOT_NEGATIVE, POSITIVE_F32);
static RELATIVE_STEP: Hyperparameter = Hyperparameter::switch("relative_step");

/// Adafactor. Other programs keep a first moment too.
pub(crate) static ADAFACTOR: OptimizerKind = OptimizerKind {
    word: "adafactor",
    trained: true,
    hyperparameters: &[
        &DECAY_RATE,
        &BETA2_CAP,
        &CLIP_THRESHOLD,
        &EPS1,
        &EPS2,
        &WEIGHT_DECAY,
        &RELATIVE_STEP,
        &STOCHASTIC_ROUNDING,
    ],
    state: &[
        KeptTensor::f32(StateWord::Row, Extent::Rows),
        KeptTensor::f32(StateWord::Col, Extent::Columns),
        KeptTensor::like_parameter(StateWord::M).kept(Kept::Elsewhere),
    ],
};

impl RuleSettings for AdafactorConfig {
    fn kind(&self) -> &'static OptimizerKind {
        &ADAFACTOR
    }

    fn check(&self, rules: &mut Rules<'_>, _learning_rate: f64) {
        rules.within(&DECAY_RATE, self.decay_rate);
        rules.within(&BETA2_CAP, self.beta2_cap);
        rules.within(&CLIP_THRESHOLD, self.clip_threshold);
        rules.within(&EPS1, self.eps1);
        rules.within(&EPS2, self.eps2);
    }
}
