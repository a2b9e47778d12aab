//! A tensor as listed in its file.

use serde::Serialize;

/// A tensor as listed in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InventoryTensor {
    /// Name in the file, unchanged.
    pub name: String,
    /// dtype: a safetensors word, or `GGML:<type>`.
    pub dtype: String,
    /// Row-major shape.
    pub shape: Vec<u64>,
}
