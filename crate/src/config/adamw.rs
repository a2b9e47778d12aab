//! AdamW: its settings, and what it keeps (shaders/README.md, "AdamW").

use super::StateWord;
use super::declare::settings;
use super::hyperparameters::{BETA1, BETA2, EPS, STOCHASTIC_ROUNDING, WEIGHT_DECAY};
use super::optimizer_kind::{KeptTensor, OptimizerKind};
use super::rules::{RuleSettings, Rules};

settings! {
    /// AdamW (arXiv:1711.05101).
    pub struct AdamwConfig {
        /// Decay factor of the first moment, 0 ≤ β < 1.
        beta1: f64 = 0.9,
        /// Decay factor of the second moment, 0 ≤ β < 1.
        beta2: f64 = 0.999,
        /// Added to √v, which is not bias-corrected at that point; ≥ 1.2e-38.
        eps: f64 = 1e-6,
        /// Decoupled weight decay, ≥ 0: p ← (1 − rate · weight_decay) · p.
        weight_decay: f64 = 0.01,
        /// Write bf16 values with stochastic rounding; false rounds to nearest, which loses small updates.
        stochastic_rounding: bool = true,
    }
}

/// The state of AdamW: two moments like the parameter.
pub(super) const MOMENTS: &[KeptTensor] = &[
    KeptTensor::like_parameter(StateWord::M),
    KeptTensor::like_parameter(StateWord::V),
];

/// AdamW.
pub(crate) static ADAMW: OptimizerKind = OptimizerKind {
    word: "adamw",
    trained: true,
    hyperparameters: &[&BETA1, &BETA2, &EPS, &WEIGHT_DECAY, &STOCHASTIC_ROUNDING],
    state: MOMENTS,
};

impl RuleSettings for AdamwConfig {
    fn kind(&self) -> &'static OptimizerKind {
        &ADAMW
    }

    fn check(&self, rules: &mut Rules<'_>, _learning_rate: f64) {
        rules.within(&BETA1, self.beta1);
        rules.within(&BETA2, self.beta2);
        rules.within(&EPS, self.eps);
    }
}
