//! The parts of a receipt: plain data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{CARRIED_FILES, MANIFEST_FILE};
use crate::formats::{Digest, Warning, base_name};

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

/// The program that wrote a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// How a model was trained: measured or given, else absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingRecord {
    /// Settings of the run; the seed as `0x` and 16 hex digits.
    pub settings: Value,
    /// What it was trained on.
    pub data: DataRecord,
    /// Optimizer steps that were completed.
    pub completed_steps: u64,
    /// Counted targets so far.
    pub tokens: u64,
    /// Measured losses.
    #[serde(default)]
    pub losses: LossRecord,
}

/// What a model was trained on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataRecord {
    /// What the user calls it.
    pub name: String,
    /// SHA-256 of its tokens, as checkpoints have it.
    pub digest: Digest,
    /// Tokens to be trained on, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

/// An evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EvaluationRecord {
    /// With what it was of.
    Of(Evaluation),
    /// A loss alone, as receipts had it: of which step, nobody knows.
    Loss(f64),
}

/// What an evaluation gave, and of what.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evaluation {
    /// Mean over counted targets, in nats.
    pub loss: f64,
    /// Completed steps of the weights.
    pub step: u64,
    /// SHA-256 of the data of which it was: those of the run, a part of which is kept back, or others.
    pub data_digest: Digest,
}

/// Losses in nats that were measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LossRecord {
    /// Of the last step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<f64>,
    /// Of an evaluation of these weights on these data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<EvaluationRecord>,
}

/// A file that was read or written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptFile {
    /// What it is for: `weights`, `optimizer`, `delta`, `adapter`, `index`, `config`, `tokenizer`, `template`, `card`, `manifest` or `other`.
    pub role: String,
    /// File name, without a path.
    pub name: String,
    /// Ending of its name: `safetensors`, `gguf`, `json`, …
    pub format: String,
    /// Size.
    pub bytes: u64,
    /// SHA-256 of the whole file; absent where not all of it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
}

impl ReceiptFile {
    /// The file `name`, whose role and format follow from its name.
    pub fn of_name(name: &str, bytes: u64, sha256: Option<Digest>) -> Self {
        let name = base_name(name);
        let format = name.rsplit_once('.').map_or("", |(_, end)| end).to_ascii_lowercase();
        let role = match (name, format.as_str()) {
            ("optimizer.safetensors", _) => "optimizer",
            ("adapter_config.json" | "adapter_model.safetensors", _) => "adapter",
            ("delta.safetensors", _) => "delta",
            _ if name.ends_with(".state_dict.json") => "weights",
            (_, "safetensors" | "gguf") => "weights",
            ("config.json" | "generation_config.json", _) => "config",
            ("tokenizer.json" | "tokenizer_config.json" | "special_tokens_map.json", _) => "tokenizer",
            _ if CARRIED_FILES.contains(&name) => "tokenizer",
            (_, "jinja") => "template",
            ("README.md", _) => "card",
            (MANIFEST_FILE, _) => "manifest",
            _ if name.ends_with(".index.json") => "index",
            _ => "other",
        };
        Self { role: role.to_string(), name: name.to_string(), format, bytes, sha256 }
    }
}

/// What became of tensors, by name, ascending.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptTensors {
    /// Taken.
    pub admitted: Vec<String>,
    /// Left out.
    pub dropped: Vec<String>,
    /// Renamed: old name, new name.
    pub renamed: Vec<(String, String)>,
    /// Written in another type.
    pub converted: Vec<String>,
    /// Multiplied by this number on the way, because the file has one scale for all.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scaled: BTreeMap<String, f64>,
}

/// What became of groups.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptGroups {
    /// Taken.
    pub admitted: Vec<String>,
    /// Left out.
    pub dropped: Vec<String>,
}

/// What a comparison gave that was made on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptCheck {
    /// What was compared.
    pub name: String,
    /// `verified`, `absent`, `subset` or `skipped`.
    pub result: CheckResult,
}

/// What a comparison gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckResult {
    /// Equal.
    Verified,
    /// There is nothing to compare with.
    Absent,
    /// Only a part of it is there.
    Subset,
    /// It was not compared.
    Skipped,
    /// Not equal.
    Differs,
}

/// A warning of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptWarning {
    /// Stable dotted word.
    pub code: String,
    /// Tensor, key or file.
    pub subject: String,
}

impl From<&Warning> for ReceiptWarning {
    fn from(warning: &Warning) -> Self {
        Self { code: warning.code.to_string(), subject: warning.subject.clone() }
    }
}
