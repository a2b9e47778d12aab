//! The parts of a receipt: plain data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{CARRIED_FILES, MANIFEST_FILE};
use crate::error::Warning;
use crate::formats::{Digest, base_name};

/// Operation that a receipt describes ([example](super::ModelIoArtifactReceipt)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Files were read into a state dict.
    Import,
    /// A model in training was written.
    Export,
    /// Files were written in another format or type.
    Convert,
    /// An adapter was merged into its base.
    Merge,
    /// A delta was made.
    Derive,
    /// A delta was applied.
    Apply,
    /// A delta was removed.
    Remove,
    /// Some tensors were taken, or renamed.
    Select,
}

/// The program that wrote a receipt ([example](super::ModelIoArtifactReceipt)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Name of the program.
    pub name: String,
    /// Version of the program.
    pub version: String,
}

/// Record of a model's training: each value is measured or given, else absent ([example](super::ModelIoArtifactReceipt)).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TrainingRecord {
    /// Settings of the run; the seed as `0x` and 16 hex digits.
    pub settings: Value,
    /// Data that the model was trained on.
    pub data: DataRecord,
    /// Number of steps that were made with other settings before these, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps_before: Option<u64>,
    /// Number of completed optimizer steps.
    pub completed_steps: u64,
    /// Number of counted targets so far.
    pub tokens: u64,
    /// Measured losses.
    #[serde(default)]
    pub losses: LossRecord,
}

/// Data that a model was trained on ([example](super::ModelIoArtifactReceipt)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DataRecord {
    /// Name that the user gave them.
    pub name: String,
    /// SHA-256 of its tokens, as in checkpoints.
    pub digest: Digest,
    /// Number of tokens to be trained on, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Number of steps that were made with other data before these, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps_before: Option<u64>,
}

/// An evaluation ([example](super::ModelIoArtifactReceipt)).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum EvaluationRecord {
    /// Loss with the step and the data that it belongs to.
    Of(Evaluation),
    /// Loss alone, as in older receipts: its step is unknown.
    Loss(f64),
}

/// Result of an evaluation, with the weights and data that it belongs to ([example](super::ModelIoArtifactReceipt)).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Evaluation {
    /// Mean over counted targets, in nats.
    pub loss: f64,
    /// Number of completed steps of the weights.
    pub step: u64,
    /// SHA-256 of the data that were evaluated: those of the run, if a part of them is kept back, or other data.
    pub data_digest: Digest,
}

/// Measured losses in nats ([example](super::ModelIoArtifactReceipt)).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LossRecord {
    /// Loss of the last step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<f64>,
    /// Result of an evaluation of the run's weights after its last step, on these data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<EvaluationRecord>,
    /// Description of what happened to the weights after they were evaluated, for example `rounding to BF16`; absent if the values in the
    /// files are those that were evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluation_before: Option<String>,
}

/// A file that was read or written ([example](super::ModelIoArtifactReceipt)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReceiptFile {
    /// Purpose: `weights`, `optimizer`, `delta`, `adapter`, `index`, `config`, `tokenizer`, `template`, `card`, `manifest` or `other`.
    pub role: String,
    /// File name, without a path.
    pub name: String,
    /// Ending of its name: `safetensors`, `gguf`, `json`, …
    pub format: String,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of the whole file; absent where not all of it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
}

impl ReceiptFile {
    /// Describes the file `name`, whose role and format follow from its name.
    pub fn of_name(name: &str, bytes: u64, sha256: Option<Digest>) -> Self {
        let name = base_name(name);
        let format = name
            .rsplit_once('.')
            .map_or("", |(_, end)| end)
            .to_ascii_lowercase();
        let role = match (name, format.as_str()) {
            ("optimizer.safetensors", _) => "optimizer",
            ("adapter_config.json" | "adapter_model.safetensors", _) => "adapter",
            ("delta.safetensors", _) => "delta",
            _ if name.ends_with(".state_dict.json") => "weights",
            (_, "safetensors" | "gguf") => "weights",
            ("config.json" | "generation_config.json", _) => "config",
            ("tokenizer.json" | "tokenizer_config.json" | "special_tokens_map.json", _) => {
                "tokenizer"
            }
            _ if CARRIED_FILES.contains(&name) => "tokenizer",
            (_, "jinja") => "template",
            ("README.md", _) => "card",
            (MANIFEST_FILE, _) => "manifest",
            _ if name.ends_with(".index.json") => "index",
            _ => "other",
        };
        Self {
            role: role.to_string(),
            name: name.to_string(),
            format,
            bytes,
            sha256,
        }
    }
}

/// Lists of tensors by their treatment, each ascending by name ([example](super::ModelIoArtifactReceipt)).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReceiptTensors {
    /// Tensors that were taken.
    pub admitted: Vec<String>,
    /// Tensors that were left out.
    pub dropped: Vec<String>,
    /// Tensors that were renamed: old name, new name.
    pub renamed: Vec<(String, String)>,
    /// Tensors that were written in another type.
    pub converted: Vec<String>,
    /// Factor that a tensor was multiplied by while it was written, because the file has one scale for all.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scaled: BTreeMap<String, f64>,
}

/// Lists of groups by their treatment ([example](super::ModelIoArtifactReceipt)).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReceiptGroups {
    /// Groups that were taken.
    pub admitted: Vec<String>,
    /// Groups that were left out.
    pub dropped: Vec<String>,
}

/// Result of a comparison that was made during the operation ([example](super::ModelIoArtifactReceipt)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReceiptCheck {
    /// Name of the values that were compared.
    pub name: String,
    /// Result: `verified`, `absent`, `subset` or `skipped`.
    pub result: CheckResult,
}

/// Result of a comparison ([example](super::ModelIoArtifactReceipt)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CheckResult {
    /// Equal.
    Verified,
    /// There is nothing to compare with.
    Absent,
    /// Only a part of the values is present.
    Subset,
    /// The values were not compared.
    Skipped,
    /// Not equal.
    Differs,
}

/// A warning of a receipt ([example](super::ModelIoArtifactReceipt)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReceiptWarning {
    /// Stable dotted word.
    pub code: String,
    /// Tensor, key or file.
    pub subject: String,
}

impl From<&Warning> for ReceiptWarning {
    fn from(warning: &Warning) -> Self {
        Self {
            code: warning.code.to_string(),
            subject: warning.subject.clone(),
        }
    }
}
