//! SGD: its settings, and what it keeps (shaders/README.md, "SGD").

use super::StateWord;
use super::declare::settings;
use super::hyperparameters::{FRACTION, STOCHASTIC_ROUNDING, WEIGHT_DECAY};
use super::optimizer_kind::{Hyperparameter, Kept, KeptTensor, OptimizerKind, Range};
use super::rules::{RuleSettings, Rules};

settings! {
    /// Stochastic gradient descent.
    pub struct SgdConfig {
        /// Momentum μ, 0 ≤ μ < 1: share of the last update that is kept; 0 disables it.
        momentum: f64 = 0.0,
        /// Use Nesterov's form of momentum; requires `momentum` > 0.
        nesterov: bool = false,
        /// Decoupled weight decay, ≥ 0: p ← (1 − rate · weight_decay) · p.
        weight_decay: f64 = 0.0,
        /// Write bf16 values with stochastic rounding; false rounds to nearest, which loses small updates.
        stochastic_rounding: bool = true,
    }
}

static MOMENTUM: Hyperparameter = Hyperparameter::new(
    "momentum",
    FRACTION,
    Range("0 ≤ μ < 1 in f32", |value| {
        (0.0..1.0).contains(&(value as f32))
    }),
);
static NESTEROV: Hyperparameter = Hyperparameter::switch("nesterov");

/// The state of SGD: a running average like the parameter, with momentum.
pub(super) const AVERAGE: &[KeptTensor] =
    &[KeptTensor::like_parameter(StateWord::Momentum).kept(Kept::Perhaps)];

/// SGD.
pub(crate) static SGD: OptimizerKind = OptimizerKind {
    word: "sgd",
    trained: true,
    hyperparameters: &[&MOMENTUM, &NESTEROV, &WEIGHT_DECAY, &STOCHASTIC_ROUNDING],
    state: AVERAGE,
};

impl RuleSettings for SgdConfig {
    fn kind(&self) -> &'static OptimizerKind {
        &SGD
    }

    fn check(&self, rules: &mut Rules<'_>, _learning_rate: f64) {
        rules.within(&MOMENTUM, self.momentum);
        rules.check(
            !self.nesterov || self.momentum > 0.0,
            NESTEROV.key,
            "false without momentum > 0",
            self.nesterov,
        );
    }
}
