//! A tensor as its file lists it.

use serde::Serialize;

/// A tensor as the file lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InventoryTensor {
    /// Name in the file, as it stands there.
    pub name: String,
    /// safetensors word, or `GGML:<type>`.
    pub dtype: String,
    /// Row-major.
    pub shape: Vec<u64>,
}
