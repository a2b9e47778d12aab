//! Parameter groups.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::rules::{DECAY_RULE, Rules, is_decay, is_positive_f32};
use super::{OptimizerConfig, TrainConfig};
use crate::error::Fault;

/// Parameters whose names match `pattern`, and how they are treated. The first group that matches counts ([example](crate::config)).
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
    /// A group with this pattern that overrides nothing.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            optimizer: None,
            weight_decay: None,
            learning_rate_scale: 1.0,
            frozen: false,
        }
    }

    /// The preset `no_decay`: no weight decay for norms, biases, rates and embeddings, and the run's for everything else.
    pub fn no_decay() -> Vec<Self> {
        let spared = Self {
            weight_decay: Some(0.0),
            ..Self::new("{*norm*,*.ln_*,*bias,*A_log,*embed*,*wte.*,*wpe.*}")
        };
        vec![spared, Self::new("*")]
    }

    /// The fault of groups that leave nothing to train, if they do.
    pub(crate) fn all_frozen(groups: &[Self]) -> Option<Fault> {
        let frozen = !groups.is_empty() && groups.iter().all(|group| group.frozen);
        frozen.then(|| Fault::new("groups", "at least one that is not frozen", "none"))
    }

    /// The update rule of this group in a run with the rule `run`.
    #[doc(hidden)]
    pub fn rule(&self, run: &OptimizerConfig) -> OptimizerConfig {
        let rule = self.optimizer.as_ref().unwrap_or(run).clone();
        match self.weight_decay {
            Some(decay) => rule.with_weight_decay(decay),
            None => rule,
        }
    }

    /// The rules that this group, at `index`, breaks.
    #[doc(hidden)]
    pub fn faults(&self, index: usize, learning_rate: f64) -> Vec<Fault> {
        let key = format!("groups[{index}]");
        let mut rules = Rules::of(&key);
        let (scale, rate) = (
            self.learning_rate_scale,
            learning_rate * self.learning_rate_scale,
        );
        rules.check(
            is_positive_f32(scale) && is_positive_f32(rate),
            "learning_rate_scale",
            "finite and > 0 in f32, also multiplied by learning_rate",
            scale,
        );
        if let Some(optimizer) = &self.optimizer {
            let faults = optimizer.faults_at(&format!("{key}.optimizer"), rate);
            rules.faults.extend(faults);
        }
        if let Some(decay) = self.weight_decay {
            rules.check(is_decay(decay, rate), "weight_decay", DECAY_RULE, decay);
        }
        rules.faults
    }
}

impl TrainConfig {
    /// The groups of the run: one of all parameters if none are given.
    pub(crate) fn groups_in_force(&self) -> Cow<'_, [GroupConfig]> {
        if self.groups.is_empty() {
            vec![GroupConfig::new("*")].into()
        } else {
            (&self.groups).into()
        }
    }
}
