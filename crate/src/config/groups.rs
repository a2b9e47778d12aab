//! Parameter groups (`optimizers.md` §9).

use serde::{Deserialize, Serialize};

use super::OptimizerConfig;
use crate::error::Fault;

/// Parameters that match `pattern` and how they are treated. First match wins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupConfig {
    /// Glob over state-dict names: `*` any text, `?` one character, `{a,b}` either.
    pub pattern: String,
    /// Overrides the run's optimizer.
    #[serde(default)]
    pub optimizer: Option<OptimizerConfig>,
    /// Overrides the optimizer's weight decay.
    #[serde(default)]
    pub weight_decay: Option<f64>,
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
    /// A group of this pattern that overrides nothing.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self { pattern: pattern.into(), optimizer: None, weight_decay: None, learning_rate_scale: 1.0, frozen: false }
    }

    /// The preset `no_decay`: norms, biases and embeddings do not decay, everything else as the run says.
    pub fn no_decay() -> Vec<Self> {
        let spared = Self { weight_decay: Some(0.0), ..Self::new("{*norm*,*.ln_*,*bias,*embed*,*wte.*,*wpe.*}") };
        vec![spared, Self::new("*")]
    }

    /// The update rule of this group in a run with the given one.
    pub fn rule(&self, run: &OptimizerConfig) -> OptimizerConfig {
        let rule = self.optimizer.as_ref().unwrap_or(run).clone();
        match self.weight_decay {
            Some(decay) => rule.with_weight_decay(decay),
            None => rule,
        }
    }

    /// Rules that this group, number `index`, breaks.
    pub fn faults(&self, index: usize, learning_rate: f64) -> Vec<Fault> {
        let mut faults = Vec::new();
        let key = format!("groups[{index}]");
        if !(self.learning_rate_scale.is_finite() && self.learning_rate_scale > 0.0) {
            faults.push(Fault::new(format!("{key}.learning_rate_scale"), "finite and > 0", self.learning_rate_scale));
        }
        let rate = learning_rate * self.learning_rate_scale;
        if let Some(optimizer) = &self.optimizer {
            faults.extend(optimizer.faults_at(&format!("{key}.optimizer"), rate));
        }
        if let Some(decay) = self.weight_decay
            && !(decay.is_finite() && decay >= 0.0 && rate * decay < 1.0)
        {
            faults.push(Fault::new(format!("{key}.weight_decay"), "finite, ≥ 0, learning_rate·weight_decay < 1", decay));
        }
        faults
    }
}
