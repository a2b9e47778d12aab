//! The description of a tensor: everything but its bytes.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::config::StateWord;
use crate::formats::{GgmlType, dtype_bits};

/// Model and checkpoint that a state dict belongs to: free texts ([example](ModelStateTensorManifest)).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Family of the model, for example `llama`.
    pub model_family: String,
    /// Revision of the model.
    pub revision: String,
    /// Kind of the checkpoint: `tabtune.train` or `tabtune.export` where tabtune wrote it.
    pub checkpoint_family: String,
    /// Name of the checkpoint: `step-<n>` where tabtune wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_ref: Option<String>,
}

impl Identity {
    /// Identifies a model of this family, and nothing else about it.
    pub(crate) fn of_family(model_family: &str) -> Self {
        Self {
            model_family: model_family.to_string(),
            ..Self::default()
        }
    }

    /// Identifies the state of a run after this many steps.
    pub(crate) fn of_run(model_family: &str, completed_steps: u64) -> Self {
        Self {
            checkpoint_family: "tabtune.train".to_string(),
            checkpoint_ref: Some(format!("step-{completed_steps}")),
            ..Self::of_family(model_family)
        }
    }
}

/// Purpose of a tensor ([example](ModelStateTensorManifest)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum TensorRole {
    /// A trained tensor.
    Parameter,
    /// An untrained running value.
    Buffer,
    /// A tensor that an optimizer keeps.
    State(StateWord),
}

impl TensorRole {
    /// True for a tensor that an optimizer keeps.
    pub(crate) fn is_state(self) -> bool {
        matches!(self, Self::State(_))
    }

    /// The role that a name shows: `<parameter>:<state word>` is a state tensor, everything else a parameter.
    pub(crate) fn of_name(name: &str) -> Self {
        let word = name.rsplit_once(':').map(|(_, word)| word);
        let word = word.and_then(StateWord::from_text);
        word.map_or(Self::Parameter, Self::State)
    }
}

impl fmt::Display for TensorRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter => f.write_str("parameter"),
            Self::Buffer => f.write_str("buffer"),
            Self::State(word) => write!(f, "state:{}", word.text()),
        }
    }
}

impl From<TensorRole> for String {
    fn from(role: TensorRole) -> Self {
        role.to_string()
    }
}

impl TryFrom<String> for TensorRole {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let word = text.strip_prefix("state:").and_then(StateWord::from_text);
        match text.as_str() {
            "parameter" => Ok(Self::Parameter),
            "buffer" => Ok(Self::Buffer),
            _ => word
                .map(Self::State)
                .ok_or("expected parameter, buffer or state:<word>"),
        }
    }
}

/// A tensor of a state dict without its values.
///
/// ```
/// use tabtune::state::{ModelStateTensorManifest, TensorRole};
///
/// let tensor = ModelStateTensorManifest::parameter("head.weight", "BF16", &[4, 2]);
/// assert_eq!(tensor.model_tree_path, ["head", "weight"]);
/// assert_eq!((tensor.role, tensor.numel(), tensor.byte_len()), (TensorRole::Parameter, Some(8), Some(16)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelStateTensorManifest {
    /// Unique name; for a parameter the Hugging Face name.
    pub state_key: String,
    /// Path of names in the module tree; for a state tensor the parameter's path and the state word.
    pub model_tree_path: Vec<String>,
    /// Purpose of the tensor.
    pub role: TensorRole,
    /// dtype: a word of safetensors, or `GGML:<type>` for blocks.
    pub dtype: String,
    /// Row-major shape; empty for a scalar.
    pub shape: Vec<u64>,
}

impl ModelStateTensorManifest {
    /// Creates the parameter `key`; its path follows from its name.
    pub fn parameter(key: &str, dtype: &str, shape: &[u64]) -> Self {
        Self {
            state_key: key.to_string(),
            model_tree_path: path_of(key),
            role: TensorRole::Parameter,
            dtype: dtype.to_string(),
            shape: shape.to_vec(),
        }
    }

    /// Creates the tensor `key` with the role that its name shows: `<parameter>:<state word>` is a state tensor, everything else a parameter.
    pub fn of_name(key: &str, dtype: &str, shape: &[u64]) -> Self {
        let role = TensorRole::of_name(key);
        Self {
            model_tree_path: default_path(key, role),
            role,
            ..Self::parameter(key, dtype, shape)
        }
    }

    /// Number of values; `None` beyond 64 bits.
    pub fn numel(&self) -> Option<u64> {
        numel(&self.shape)
    }

    /// Number of its stored bytes; `None` for an unknown dtype, a row that is no whole number of blocks, or a size beyond 64 bits.
    pub fn byte_len(&self) -> Option<u64> {
        byte_len(&self.dtype, &self.shape)
    }

    /// True if its values are stored one by one, not in blocks.
    pub fn is_dense(&self) -> bool {
        !self.dtype.starts_with("GGML:")
    }
}

/// Path of the tensor `name`: the names in it; for a state tensor those of its parameter, and the state word.
pub(super) fn default_path(name: &str, role: TensorRole) -> Vec<String> {
    match (role, name.rsplit_once(':')) {
        (TensorRole::State(word), Some((parameter, text))) if text == word.text() => {
            let mut path = path_of(parameter);
            path.push(text.to_string());
            path
        }
        _ => path_of(name),
    }
}

/// Splits a state-dict name into the names of its modules.
fn path_of(key: &str) -> Vec<String> {
    let mut path = Vec::with_capacity(key.split('.').count());
    path.extend(key.split('.').map(String::from));
    path
}

/// Number of values of this shape; `None` beyond 64 bits.
pub(super) fn numel(shape: &[u64]) -> Option<u64> {
    shape
        .iter()
        .try_fold(1u64, |count, &dim| count.checked_mul(dim))
}

/// True if the size of values of this dtype is known.
pub(super) fn is_sized(dtype: &str) -> bool {
    let has_block = |ggml: GgmlType| ggml.block.is_some();
    dtype_bits(dtype).is_some() || GgmlType::of_dtype(dtype).is_some_and(has_block)
}

/// Number of stored bytes of a tensor; `None` for an unknown dtype, a row that is no whole number of blocks, or a size beyond
/// 64 bits.
pub fn byte_len(dtype: &str, shape: &[u64]) -> Option<u64> {
    let elements = numel(shape)?;
    if let Some(bits) = dtype_bits(dtype) {
        let bits = elements.checked_mul(bits)?;
        return bits.is_multiple_of(8).then_some(bits / 8);
    }
    let (block, bytes) = GgmlType::of_dtype(dtype)?.block?;
    shape.last()?.is_multiple_of(block).then_some(())?;
    (elements / block).checked_mul(bytes)
}
