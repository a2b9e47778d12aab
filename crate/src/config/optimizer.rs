//! Settings of the update rules (shaders/README.md, "Update rules").

use serde::{Deserialize, Serialize};

use super::ApolloConfig;
use super::rules::{DECAY_RULE, Rules, is_decay, is_positive_f32};
use crate::error::Fault;

/// AdamW (arXiv:1711.05101).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AdamwConfig {
    /// Decay factor of the first moment, 0 ≤ β < 1.
    pub beta1: f64,
    /// Decay factor of the second moment, 0 ≤ β < 1.
    pub beta2: f64,
    /// Added to √v, which is not bias-corrected at that point; ≥ 1.2e-38.
    pub eps: f64,
    /// Decoupled weight decay, ≥ 0: p ← (1 − rate · weight_decay) · p.
    pub weight_decay: f64,
    /// Write bf16 values with stochastic rounding; false rounds to nearest, which loses small updates.
    pub stochastic_rounding: bool,
}

impl Default for AdamwConfig {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, eps: 1e-6, weight_decay: 0.01, stochastic_rounding: true }
    }
}

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

/// Stochastic gradient descent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SgdConfig {
    /// Momentum μ, 0 ≤ μ < 1: share of the last update that is kept; 0 disables it.
    pub momentum: f64,
    /// Use Nesterov's form of momentum; requires `momentum` > 0.
    pub nesterov: bool,
    /// Decoupled weight decay, ≥ 0: p ← (1 − rate · weight_decay) · p.
    pub weight_decay: f64,
    /// Write bf16 values with stochastic rounding; false rounds to nearest, which loses small updates.
    pub stochastic_rounding: bool,
}

impl Default for SgdConfig {
    fn default() -> Self {
        Self { momentum: 0.0, nesterov: false, weight_decay: 0.0, stochastic_rounding: true }
    }
}

/// Update rule of a run or a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum OptimizerConfig {
    /// AdamW.
    Adamw(AdamwConfig),
    /// Adafactor.
    Adafactor(AdafactorConfig),
    /// APOLLO.
    Apollo(ApolloConfig),
    /// SGD.
    Sgd(SgdConfig),
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self::Adamw(AdamwConfig::default())
    }
}

#[doc(hidden)]
impl OptimizerConfig {
    /// Returns every rule with its defaults; APOLLO as APOLLO-Mini, whose rank fits every model.
    pub(crate) fn every() -> [Self; 4] {
        let apollo = ApolloConfig { mini: true, ..ApolloConfig::default() };
        [Self::default(), Self::Adafactor(Default::default()), Self::Apollo(apollo), Self::Sgd(Default::default())]
    }

    /// Returns its `type`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Adamw(_) => "adamw",
            Self::Adafactor(_) => "adafactor",
            Self::Apollo(_) => "apollo",
            Self::Sgd(_) => "sgd",
        }
    }

    /// Returns the weight decay λ.
    pub fn weight_decay(&self) -> f64 {
        match self {
            Self::Adamw(c) => c.weight_decay,
            Self::Adafactor(c) => c.weight_decay,
            Self::Apollo(c) => c.weight_decay,
            Self::Sgd(c) => c.weight_decay,
        }
    }

    /// Returns the same rule with another weight decay λ.
    #[must_use]
    pub(crate) fn with_weight_decay(mut self, decay: f64) -> Self {
        match &mut self {
            Self::Adamw(c) => c.weight_decay = decay,
            Self::Adafactor(c) => c.weight_decay = decay,
            Self::Apollo(c) => c.weight_decay = decay,
            Self::Sgd(c) => c.weight_decay = decay,
        }
        self
    }

    /// Returns true if bf16 values are written with stochastic rounding.
    pub fn stochastic_rounding(&self) -> bool {
        match self {
            Self::Adamw(c) => c.stochastic_rounding,
            Self::Adafactor(c) => c.stochastic_rounding,
            Self::Apollo(c) => c.stochastic_rounding,
            Self::Sgd(c) => c.stochastic_rounding,
        }
    }

    /// Returns the rules that these values break at the given learning rate.
    pub fn faults(&self, learning_rate: f64) -> Vec<Fault> {
        self.faults_at("optimizer", learning_rate)
    }

    /// Like [`Self::faults`], with the keys under `prefix`.
    pub(crate) fn faults_at(&self, prefix: &str, learning_rate: f64) -> Vec<Fault> {
        let mut rules = Rules { prefix, faults: Vec::new() };
        match self {
            Self::Adamw(c) => rules.moments(c.beta1, c.beta2, c.eps),
            Self::Adafactor(c) => {
                rules.check(is_positive_f32(-c.decay_rate), "decay_rate", "finite and < 0 in f32", c.decay_rate);
                rules.beta("beta2_cap", c.beta2_cap);
                rules.positive("clip_threshold", c.clip_threshold);
                rules.check((c.eps1 as f32).is_finite() && c.eps1 >= 1e-30, "eps1", "finite in f32 and ≥ 1e-30", c.eps1);
                rules.positive("eps2", c.eps2);
            }
            Self::Apollo(c) => c.check(&mut rules, learning_rate),
            Self::Sgd(c) => {
                rules.check((0.0..1.0).contains(&(c.momentum as f32)), "momentum", "0 ≤ μ < 1 in f32", c.momentum);
                rules.check(!c.nesterov || c.momentum > 0.0, "nesterov", "false without momentum > 0", c.nesterov);
            }
        }
        let decay = self.weight_decay();
        rules.check(is_decay(decay, learning_rate), "weight_decay", DECAY_RULE, decay);
        rules.faults
    }
}
