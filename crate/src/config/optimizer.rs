//! Update rules and parameter groups (`optimizers.md` §4–§9).

use serde::{Deserialize, Serialize};

use crate::error::Fault;

/// AdamW (arXiv:1711.05101).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdamwConfig {
    /// EMA factor of m.
    pub beta1: f64,
    /// EMA factor of v.
    pub beta2: f64,
    /// Added to √v.
    pub eps: f64,
    /// Decoupled decay.
    pub weight_decay: f64,
    /// bf16 write-backs: stochastic (true) or nearest.
    pub stochastic_rounding: bool,
}

impl Default for AdamwConfig {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, eps: 1e-6, weight_decay: 0.01, stochastic_rounding: true }
    }
}

/// The update rule of a run or a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum OptimizerConfig {
    /// AdamW.
    Adamw(AdamwConfig),
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self::Adamw(AdamwConfig::default())
    }
}

impl OptimizerConfig {
    /// Rules that these values break at the given base rate.
    pub fn faults(&self, learning_rate: f64) -> Vec<Fault> {
        let mut faults = Vec::new();
        match self {
            Self::Adamw(c) => {
                for (key, beta) in [("optimizer.beta1", c.beta1), ("optimizer.beta2", c.beta2)] {
                    if !(0.0..1.0).contains(&beta) {
                        faults.push(Fault::new(key, "0 ≤ β < 1", beta));
                    }
                }
                if !(c.eps.is_finite() && c.eps >= 1.2e-38) {
                    faults.push(Fault::new("optimizer.eps", "finite and ≥ 1.2e-38", c.eps));
                }
                if !(c.weight_decay.is_finite() && c.weight_decay >= 0.0 && learning_rate * c.weight_decay < 1.0) {
                    faults.push(Fault::new("optimizer.weight_decay", "finite, ≥ 0, learning_rate·weight_decay < 1", c.weight_decay));
                }
            }
        }
        faults
    }
}

/// Parameters that match `pattern` (glob over state-dict names) and how they are treated. First match wins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupConfig {
    /// Glob over state-dict names.
    pub pattern: String,
    /// Overrides the run's optimizer.
    #[serde(default)]
    pub optimizer: Option<OptimizerConfig>,
    /// Multiplies the schedule's rate.
    #[serde(default = "one")]
    pub learning_rate_scale: f64,
    /// No gradient, no state.
    #[serde(default)]
    pub frozen: bool,
}

fn one() -> f64 {
    1.0
}

impl GroupConfig {
    /// Rules that this group, number `index`, breaks.
    pub fn faults(&self, index: usize, learning_rate: f64) -> Vec<Fault> {
        let mut faults = Vec::new();
        if !(self.learning_rate_scale.is_finite() && self.learning_rate_scale > 0.0) {
            faults.push(Fault::new(format!("groups[{index}].learning_rate_scale"), "finite and > 0", self.learning_rate_scale));
        }
        if let Some(optimizer) = &self.optimizer {
            faults.extend(optimizer.faults(learning_rate * self.learning_rate_scale));
        }
        faults
    }
}
