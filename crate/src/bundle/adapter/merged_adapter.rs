//! An adapter that was merged into a model, or attached to it.

use super::config::LoraConfig;
use crate::state::ReceiptFile;

/// An adapter that was merged into a model.
#[derive(Debug, Clone)]
pub struct MergedAdapter {
    /// Name of the file of its weights.
    pub file: String,
    /// Size of that file in bytes.
    pub bytes: u64,
    /// Configuration of the adapter.
    pub config: LoraConfig,
    /// Its configuration file, with its checksum, and its weights.
    pub inputs: Vec<ReceiptFile>,
}
