//! Adafactor: its settings, and what it keeps (shaders/README.md, "Adafactor").

use super::StateWord;
use super::declare::settings;
use super::hyperparameters::{
    BETA, FRACTION, NEGATIVE, NOT_NEGATIVE, POSITIVE, POSITIVE_F32, STOCHASTIC_ROUNDING,
    WEIGHT_DECAY,
};
use super::optimizer_kind::{Extent, Hyperparameter, Kept, KeptTensor, OptimizerKind, Range};
use super::rules::{RuleSettings, Rules, is_positive_f32};

settings! {
    /// Adafactor without a first moment (arXiv:1804.04235).
    pub struct AdafactorConfig {
        /// Exponent, < 0: in step t a new statistic of g² has the weight t^decay_rate.
        decay_rate: f64 = -0.8,
        /// Maximum share of the old statistic, 0 ≤ β < 1: a new one has at least the weight 1 − beta2_cap.
        beta2_cap: f64 = 0.999,
        /// Maximum RMS of an update before the learning rate, > 0; a larger update is scaled down.
        clip_threshold: f64 = 1.0,
        /// Added to g²; ≥ 1e-30.
        eps1: f64 = 1e-30,
        /// Minimum RMS of a parameter that `relative_step` uses, > 0.
        eps2: f64 = 1e-3,
        /// Decoupled weight decay, ≥ 0: p ← (1 − rate · weight_decay) · p.
        weight_decay: f64 = 0.01,
        /// Multiply the learning rate by the RMS of the parameter, which is at least `eps2`.
        relative_step: bool = false,
        /// Write bf16 values with stochastic rounding; false rounds to nearest, which loses small updates.
        stochastic_rounding: bool = true,
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
