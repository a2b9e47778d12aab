//! Settings of the update rules (shaders/README.md, "Update rules").

use serde::{Deserialize, Serialize};

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

/// The random matrix that APOLLO projects gradients with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ProjectorKind {
    /// Independent entries.
    #[default]
    Normal,
    /// Orthonormal columns.
    Orthogonal,
}

/// APOLLO and APOLLO-Mini (arXiv:2412.05270).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ApolloConfig {
    /// Factor of the first moment's average.
    pub beta1: f64,
    /// Factor of the second moment's average.
    pub beta2: f64,
    /// Added to √v, which is not bias-corrected there.
    pub eps: f64,
    /// Decoupled: p ← (1 − rate · weight_decay) · p.
    pub weight_decay: f64,
    /// APOLLO-Mini: one scale for a tensor instead of one for each channel.
    pub mini: bool,
    /// Rank of the projection. Required; 1 with `mini`.
    pub rank: Option<u64>,
    /// The update is multiplied by √scale: 1, with `mini` 128.
    pub scale: Option<f64>,
    /// √scale is applied before the growth limiter.
    pub scale_front: bool,
    /// Steps between new projectors.
    pub update_steps: u64,
    /// Entries of the projector: independent, or in orthonormal columns.
    pub projector: ProjectorKind,
    /// bf16 values are written with stochastic rounding; otherwise to nearest, and small updates are lost.
    pub stochastic_rounding: bool,
}

impl Default for ApolloConfig {
    fn default() -> Self {
        Self {
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-6,
            weight_decay: 0.0,
            mini: false,
            rank: None,
            scale: None,
            scale_front: false,
            update_steps: 200,
            projector: ProjectorKind::Normal,
            stochastic_rounding: true,
        }
    }
}

impl ApolloConfig {
    /// The rank in force.
    pub fn rank(&self) -> usize {
        self.rank.unwrap_or(1) as usize
    }

    /// The scale in force.
    pub fn scale(&self) -> f64 {
        self.scale.unwrap_or(if self.mini { 128.0 } else { 1.0 })
    }

    /// The rule of parameters that are too small to project: those without two dimensions, or with a shorter side of at most the rank.
    pub fn fallback(&self) -> AdamwConfig {
        AdamwConfig {
            beta1: self.beta1,
            beta2: self.beta2,
            eps: self.eps,
            weight_decay: self.weight_decay,
            stochastic_rounding: self.stochastic_rounding,
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
            Self::Apollo(c) => {
                rules.moments(c.beta1, c.beta2, c.eps);
                match c.rank {
                    None => rules.check(c.mini, "rank", "an integer ≥ 1 (required unless mini)", "nothing"),
                    Some(rank) => rules.check((1..=u64::from(u32::MAX)).contains(&rank), "rank", "an integer ≥ 1", rank),
                }
                rules.positive("scale", c.scale());
                rules.check(c.update_steps >= 1, "update_steps", "an integer ≥ 1", c.update_steps);
            }
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
