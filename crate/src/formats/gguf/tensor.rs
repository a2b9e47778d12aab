//! A tensor of a GGUF file: its name, type and position.

use super::ggml_type::GgmlType;

/// One tensor of a GGUF file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GgufTensor {
    /// Name in the file.
    pub name: String,
    /// Type of its values or blocks.
    pub ggml_type: GgmlType,
    /// Row-major shape: the dimensions of the file, reversed.
    pub shape: Vec<u64>,
    /// Position of the first byte, counted from the start of the file.
    pub begin: u64,
    /// Number of bytes; `None` for a type of unknown size.
    pub bytes: Option<u64>,
}
