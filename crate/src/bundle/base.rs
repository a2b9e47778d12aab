//! What training started from.

use serde::{Deserialize, Serialize};

use super::digest::Digest;

/// The files that training started from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Base {
    /// Name of the model.
    pub name: String,
    /// `hf_folder` or `gguf`.
    pub format: String,
    /// Its weight files.
    pub files: Vec<BaseFile>,
    /// Digest of its parameters and buffers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights_digest: Option<Digest>,
}

/// A weight file of a [`Base`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaseFile {
    /// File name.
    pub name: String,
    /// Size.
    pub bytes: u64,
    /// SHA-256 of its header; absent in checkpoints of format 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_sha256: Option<Digest>,
    /// SHA-256 of the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
}
