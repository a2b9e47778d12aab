//! Which optimizer trains which tensors, and where it stands: a group's own account.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tensor::StateWord;

/// What the members of a group have in common: plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupClass {
    /// Tables of tokens or positions.
    Embedding,
    /// Matrices of blocks.
    Matrix,
    /// The matrix that gives the logits.
    Head,
    /// Weights of norms.
    Scalar,
    /// Biases.
    Bias,
    /// Several of these.
    Mixed,
}

/// An optimizer by its public name, with every hyperparameter as a number: 0 and 1 for a switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OptimizerRecord {
    /// `sgd`, `adamw`, `adafactor`, `apollo`; `adam`, `lars`, `lamb` are carried, not trained.
    pub kind: String,
    /// By public name.
    #[serde(flatten)]
    pub hyperparameters: BTreeMap<String, f64>,
}

/// How the group's parameters differ from the run's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParameterSemantics {
    /// Factor of the learning rate.
    #[serde(default = "one")]
    pub learning_rate_scale: f64,
    /// Factor of the weight decay.
    #[serde(default = "one")]
    pub weight_decay_scale: f64,
    /// No gradient, no state, no update.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub frozen: bool,
}

fn one() -> f64 {
    1.0
}

impl Default for ParameterSemantics {
    fn default() -> Self {
        Self { learning_rate_scale: 1.0, weight_decay_scale: 1.0, frozen: false }
    }
}

/// The schedule of the group's learning rate and where it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulerAccount {
    /// Its public name.
    pub kind: String,
    /// Its settings.
    pub config: Value,
    /// The resolved step at which its decay starts.
    pub start: Option<u64>,
}

/// A parameter of a group and its state tensors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupMember {
    /// Key of the parameter.
    pub parameter: String,
    /// Key of each state tensor.
    pub state: BTreeMap<StateWord, String>,
}

impl GroupMember {
    /// The keys of its tensors: the parameter, then its state by word.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.parameter).chain(self.state.values()).map(String::as_str)
    }
}

/// Where tensors lie: plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Residency {
    /// In the host's memory.
    Host,
    /// On the device.
    Device,
    /// Elsewhere, brought when needed.
    Offloaded,
}

/// Where state tensors lie during a step and between steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResidencyPolicy {
    /// During a step.
    pub step: Residency,
    /// Between steps.
    pub idle: Residency,
}

/// A group of parameters that one optimizer trains.
///
/// ```
/// use tabtune::state::ModelStateGroupAssignment;
///
/// let text = r#"{"group_id": "decoder.head", "class": "head", "model_tree_path": ["decoder", "head"],
///     "optimizer": {"kind": "sgd", "learning_rate": 0.1, "weight_decay": 0}, "parameter_semantics": {"learning_rate_scale": 0.5},
///     "members": [{"parameter": "head.weight", "state": {"step": "head.weight:step"}}], "applied_steps": 7}"#;
/// let group: ModelStateGroupAssignment = serde_json::from_str(text)?;
/// assert_eq!(group.optimizer.hyperparameters["learning_rate"], 0.1);
/// assert_eq!(group.parameter_semantics.weight_decay_scale, 1.0);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelStateGroupAssignment {
    /// Unique; `.` and `/` separate parts.
    pub group_id: String,
    /// What the members have in common.
    pub class: GroupClass,
    /// The module that the group stands for; empty for the whole model.
    pub model_tree_path: Vec<String>,
    /// Optimizer and hyperparameters.
    pub optimizer: OptimizerRecord,
    /// Scales and freezing.
    pub parameter_semantics: ParameterSemantics,
    /// Schedule of the learning rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<SchedulerAccount>,
    /// Its parameters, in their order.
    pub members: Vec<GroupMember>,
    /// At least the step of every member.
    pub applied_steps: u64,
    /// Where state is meant to lie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residency_policy: Option<ResidencyPolicy>,
    /// Where it lies now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residency: Option<Residency>,
}
