//! Parameter groups.

use serde::{Deserialize, Serialize};

use super::OptimizerConfig;
use super::rules::{DECAY_RULE, is_decay, is_positive_f32};
use crate::error::Fault;

/// Parameters whose names match `pattern`, and how they are treated. The first group that matches counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GroupConfig {
    /// Glob over tensor names: `*` matches any text, `?` one character, `{a,b}` either text.
    pub pattern: String,
    /// Update rule of the group: keys laid over the run's optimizer, or another rule with its `type`. If absent, the run's.
    #[serde(default)]
    pub optimizer: Option<OptimizerConfig>,
    /// Weight decay of the group in place of its optimizer's, ≥ 0.
    #[serde(default)]
    pub weight_decay: Option<f64>,
    /// Factor of the learning rate, > 0.
    #[serde(default = "one")]
    pub learning_rate_scale: f64,
    /// Keep these parameters unchanged: no gradient, no state, no update.
    #[serde(default)]
    pub frozen: bool,
}

fn one() -> f64 {
    1.0
}

impl GroupConfig {
    /// Returns a group with this pattern that overrides nothing.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            optimizer: None,
            weight_decay: None,
            learning_rate_scale: 1.0,
            frozen: false,
        }
    }

    /// Returns the preset `no_decay`: no weight decay for norms, biases and embeddings, and the run's for everything else.
    pub fn no_decay() -> Vec<Self> {
        let spared = Self {
            weight_decay: Some(0.0),
            ..Self::new("{*norm*,*.ln_*,*bias,*embed*,*wte.*,*wpe.*}")
        };
        vec![spared, Self::new("*")]
    }

    /// Returns the fault of groups that leave nothing to train.
    pub(crate) fn all_frozen(groups: &[Self]) -> Option<Fault> {
        let frozen = !groups.is_empty() && groups.iter().all(|group| group.frozen);
        frozen.then(|| Fault::new("groups", "at least one that is not frozen", "none"))
    }

    /// Returns the update rule of this group in a run with the rule `run`.
    #[doc(hidden)]
    pub fn rule(&self, run: &OptimizerConfig) -> OptimizerConfig {
        let rule = self.optimizer.as_ref().unwrap_or(run).clone();
        match self.weight_decay {
            Some(decay) => rule.with_weight_decay(decay),
            None => rule,
        }
    }

    /// Returns the rules that this group, at `index`, breaks.
    #[doc(hidden)]
    pub fn faults(&self, index: usize, learning_rate: f64) -> Vec<Fault> {
        let mut faults = Vec::new();
        let key = format!("groups[{index}]");
        let rate = learning_rate * self.learning_rate_scale;
        if !(is_positive_f32(self.learning_rate_scale) && is_positive_f32(rate)) {
            let rule = "finite and > 0 in f32, also multiplied by learning_rate";
            faults.push(Fault::new(
                format!("{key}.learning_rate_scale"),
                rule,
                self.learning_rate_scale,
            ));
        }
        if let Some(optimizer) = &self.optimizer {
            faults.extend(optimizer.faults_at(&format!("{key}.optimizer"), rate));
        }
        if let Some(decay) = self.weight_decay
            && !is_decay(decay, rate)
        {
            faults.push(Fault::new(format!("{key}.weight_decay"), DECAY_RULE, decay));
        }
        faults
    }
}
