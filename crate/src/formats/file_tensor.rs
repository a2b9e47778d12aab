//! A tensor in the header of a file.

use serde::Serialize;

use super::gguf::GgmlType;

/// A tensor in the header of a file: its name, type and position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileTensor {
    /// Name in the file, unchanged.
    pub name: String,
    /// dtype: a word of safetensors, or `GGML:<type>`.
    pub dtype: String,
    /// Row-major shape; empty for a scalar. The dimensions in a GGUF file are in the opposite order.
    pub shape: Vec<u64>,
    /// Position of the first byte, counted from the start of the file.
    #[serde(skip)]
    pub begin: u64,
    /// Number of bytes; `None` for a type of unknown size.
    #[serde(skip)]
    pub bytes: Option<u64>,
}

impl FileTensor {
    /// Describes a tensor that has no position yet.
    pub fn new(name: &str, dtype: &str, shape: &[u64]) -> Self {
        Self {
            name: name.to_string(),
            dtype: dtype.to_string(),
            shape: shape.to_vec(),
            begin: 0,
            bytes: None,
        }
    }

    /// Position one past the last byte; `begin` for a type of unknown size.
    pub fn end(&self) -> u64 {
        self.begin.saturating_add(self.bytes.unwrap_or(0))
    }

    /// Type of a tensor of a GGUF file; `None` for a dtype that ggml does not have.
    pub fn ggml_type(&self) -> Option<GgmlType> {
        GgmlType::of_word(&self.dtype)
    }
}
