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
    /// Factor of the first moment's average.
    pub beta1: f64,
    /// Factor of the second moment's average.
    pub beta2: f64,
    /// Added to √v, which is not bias-corrected there.
    pub eps: f64,
    /// Decoupled: p ← (1 − rate · weight_decay) · p.
    pub weight_decay: f64,
    /// bf16 values are written with stochastic rounding; otherwise to nearest, and small updates are lost.
    pub stochastic_rounding: bool,
}

impl Default for AdamwConfig {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, eps: 1e-6, weight_decay: 0.01, stochastic_rounding: true }
    }
}

/// Adafactor without first moment (arXiv:1804.04235).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AdafactorConfig {
    /// A new statistic has the weight t^decay_rate.
    pub decay_rate: f64,
    /// That weight is at least 1 − beta2_cap.
    pub beta2_cap: f64,
    /// Largest RMS of an update.
    pub clip_threshold: f64,
    /// Added to g².
    pub eps1: f64,
    /// Smallest scale of `relative_step`.
    pub eps2: f64,
    /// Decoupled: p ← (1 − rate · weight_decay) · p.
    pub weight_decay: f64,
    /// The rate is multiplied by the RMS of the parameter.
    pub relative_step: bool,
    /// bf16 values are written with stochastic rounding; otherwise to nearest, and small updates are lost.
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
    /// Share of the last update that is kept; 0 is none.
    pub momentum: f64,
    /// Nesterov's form, which needs a momentum.
    pub nesterov: bool,
    /// Decoupled: p ← (1 − rate · weight_decay) · p.
    pub weight_decay: f64,
    /// bf16 values are written with stochastic rounding; otherwise to nearest, and small updates are lost.
    pub stochastic_rounding: bool,
}

impl Default for SgdConfig {
    fn default() -> Self {
        Self { momentum: 0.0, nesterov: false, weight_decay: 0.0, stochastic_rounding: true }
    }
}

/// The update rule of a run or a group.
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

impl OptimizerConfig {
    /// Its `type`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Adamw(_) => "adamw",
            Self::Adafactor(_) => "adafactor",
            Self::Apollo(_) => "apollo",
            Self::Sgd(_) => "sgd",
        }
    }

    /// λ.
    pub fn weight_decay(&self) -> f64 {
        match self {
            Self::Adamw(c) => c.weight_decay,
            Self::Adafactor(c) => c.weight_decay,
            Self::Apollo(c) => c.weight_decay,
            Self::Sgd(c) => c.weight_decay,
        }
    }

    /// The same rule with another λ.
    #[must_use]
    pub fn with_weight_decay(mut self, decay: f64) -> Self {
        match &mut self {
            Self::Adamw(c) => c.weight_decay = decay,
            Self::Adafactor(c) => c.weight_decay = decay,
            Self::Apollo(c) => c.weight_decay = decay,
            Self::Sgd(c) => c.weight_decay = decay,
        }
        self
    }

    /// bf16 write-backs are stochastic.
    pub fn stochastic_rounding(&self) -> bool {
        match self {
            Self::Adamw(c) => c.stochastic_rounding,
            Self::Adafactor(c) => c.stochastic_rounding,
            Self::Apollo(c) => c.stochastic_rounding,
            Self::Sgd(c) => c.stochastic_rounding,
        }
    }

    /// Rules that these values break at the given base rate.
    pub fn faults(&self, learning_rate: f64) -> Vec<Fault> {
        self.faults_at("optimizer", learning_rate)
    }

    /// As [`Self::faults`], with the keys under `prefix`.
    pub fn faults_at(&self, prefix: &str, learning_rate: f64) -> Vec<Fault> {
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
