//! Groups of parameters: which optimizer trains which tensors, and its progress.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::StateWord;

/// Common property of the members of a group: plain data ([example](ModelStateGroupAssignment)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupClass {
    /// Tables of tokens or positions.
    Embedding,
    /// Matrices of blocks.
    Matrix,
    /// The matrix that computes the logits.
    Head,
    /// Weights of norms.
    Scalar,
    /// Biases.
    Bias,
    /// Members of several classes.
    Mixed,
}

/// An optimizer by its public name, with every hyperparameter as a number: 0 and 1 for a switch ([example](ModelStateGroupAssignment)).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OptimizerRecord {
    /// Word of its kind; kinds that tabtune does not train are carried.
    pub kind: String,
    /// Hyperparameters by public name.
    #[serde(flatten)]
    pub hyperparameters: BTreeMap<String, f64>,
}

impl OptimizerRecord {
    /// The record under the kind that tabtune trains: Adam without decay is AdamW without decay.
    pub(crate) fn trained(&self) -> Cow<'_, Self> {
        let decay = self.hyperparameters.get("weight_decay");
        if self.kind != "adam" || decay.is_some_and(|&decay| decay != 0.0) {
            return Cow::Borrowed(self);
        }
        let mut record = self.clone();
        record.kind = "adamw".to_string();
        record
            .hyperparameters
            .insert("weight_decay".to_string(), 0.0);
        Cow::Owned(record)
    }
}

/// Differences between the group's parameters and the run's settings ([example](ModelStateGroupAssignment)).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ParameterSemantics {
    /// Factor of the learning rate.
    pub learning_rate_scale: f64,
    /// Factor of the weight decay.
    pub weight_decay_scale: f64,
    /// True if the parameters have no gradient, no state and no update.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub frozen: bool,
}

impl Default for ParameterSemantics {
    fn default() -> Self {
        Self {
            learning_rate_scale: 1.0,
            weight_decay_scale: 1.0,
            frozen: false,
        }
    }
}

/// Schedule of the group's learning rate, and its progress ([example](ModelStateGroupAssignment)).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulerAccount {
    /// Public name of the schedule.
    pub kind: String,
    /// Settings of the schedule.
    pub config: Value,
    /// Resolved step at which the decay starts.
    pub start: Option<u64>,
}

/// A parameter of a group and its state tensors ([example](ModelStateGroupAssignment)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupMember {
    /// Key of the parameter.
    pub parameter: String,
    /// Key of each state tensor.
    pub state: BTreeMap<StateWord, String>,
}

impl GroupMember {
    /// Keys of its tensors: the parameter, then its state by word.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.parameter)
            .chain(self.state.values())
            .map(String::as_str)
    }
}

/// Place where tensors reside: plain data ([example](ModelStateGroupAssignment)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Residency {
    /// In the host's memory.
    Host,
    /// On the device.
    Device,
    /// Elsewhere, loaded when needed.
    Offloaded,
}

/// Residency of state tensors during a step and between steps ([example](ModelStateGroupAssignment)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ResidencyPolicy {
    /// Residency during a step.
    pub step: Residency,
    /// Residency between steps.
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
    /// Unique name; `.` and `/` separate its parts.
    pub group_id: String,
    /// Common property of the members.
    pub class: GroupClass,
    /// Path of the module that the group represents; empty for the whole model.
    pub model_tree_path: Vec<String>,
    /// Optimizer and hyperparameters.
    pub optimizer: OptimizerRecord,
    /// Scales and freezing.
    pub parameter_semantics: ParameterSemantics,
    /// Schedule of the learning rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<SchedulerAccount>,
    /// Parameters of the group, in their order.
    pub members: Vec<GroupMember>,
    /// Number of applied steps: at least the step of every member.
    pub applied_steps: u64,
    /// Intended residency of the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub residency_policy: Option<ResidencyPolicy>,
    /// Actual residency of the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub residency: Option<Residency>,
}

/// Lists the names of groups.
pub(crate) fn group_ids(groups: &[ModelStateGroupAssignment]) -> Vec<String> {
    groups.iter().map(|group| group.group_id.clone()).collect()
}
