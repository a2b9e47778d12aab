//! A tensor of a state dict, and the checks of its key, its size and its rows.

use super::digest::leaf;
use super::payload::Payload;
use super::tensor::{ModelStateTensorManifest, TensorRole};
use crate::error::{Refusal, Result, word};
use crate::formats::{Digest, GgmlType, dtype_bits};

/// Maximum length of a key in bytes.
const MAX_KEY_BYTES: usize = 1_024;

/// A tensor of a state dict: its description and its stored bytes.
#[derive(Debug, Clone)]
pub struct StateTensorEntry {
    /// Name, path, role, dtype, shape.
    pub manifest: ModelStateTensorManifest,
    /// Stored bytes: little-endian, row-major, contiguous.
    pub payload: Payload,
}

impl StateTensorEntry {
    /// Returns whether it is a tensor that an optimizer keeps.
    pub fn is_state(&self) -> bool {
        matches!(self.manifest.role, TensorRole::State(_))
    }

    /// Returns the digest of name, dtype, shape and bytes, if that of the bytes is known already.
    pub(crate) fn known_leaf(&self) -> Option<Digest> {
        let ModelStateTensorManifest {
            state_key,
            dtype,
            shape,
            ..
        } = &self.manifest;
        Some(leaf(state_key, dtype, shape, self.payload.known_digest()?))
    }

    /// Computes the digest of name, dtype, shape and bytes.
    pub(super) async fn leaf(&self) -> Result<Digest> {
        let ModelStateTensorManifest {
            state_key,
            dtype,
            shape,
            ..
        } = &self.manifest;
        Ok(leaf(state_key, dtype, shape, self.payload.digest().await?))
    }
}

/// Refuses a key that the tensor does not state itself, or that is empty or too long.
pub(super) fn wrong_key(key: &str, manifest: &ModelStateTensorManifest) -> Option<Refusal> {
    let refusal = Refusal::new(word!("state.key.mismatch")).subject(key);
    if manifest.state_key != key {
        return Some(refusal.expected(key).found(&manifest.state_key));
    }
    let sized = (1..=MAX_KEY_BYTES).contains(&key.len());
    (!sized).then(|| {
        refusal
            .expected(format!("1 to {MAX_KEY_BYTES} bytes"))
            .found(key.len())
    })
}

/// Returns whether the rows are no whole number of blocks.
fn has_broken_row(manifest: &ModelStateTensorManifest) -> bool {
    let block = GgmlType::of_dtype(&manifest.dtype).and_then(|ggml| ggml.block);
    block.is_some_and(|(elements, _)| {
        manifest
            .shape
            .last()
            .is_none_or(|row| !row.is_multiple_of(elements))
    })
}

/// Refuses rows that are no whole number of blocks.
pub(super) fn broken_row(key: &str, manifest: &ModelStateTensorManifest) -> Option<Refusal> {
    let refusal = Refusal::new(word!("state.tensor.block-row")).subject(key);
    let expected = format!("rows of whole blocks of {}", manifest.dtype);
    has_broken_row(manifest).then(|| {
        refusal
            .expected(expected)
            .found(format!("{:?}", manifest.shape))
    })
}

/// Refuses another number of bytes than dtype and shape require, unless the rows are broken, which is refused already.
pub(super) fn wrong_length(key: &str, entry: &StateTensorEntry) -> Option<Refusal> {
    let StateTensorEntry { manifest, payload } = entry;
    let need = manifest.byte_len();
    if need == Some(payload.len()) || has_broken_row(manifest) {
        return None;
    }
    let refusal = Refusal::new(word!("state.tensor.length"))
        .subject(key)
        .found(format!("{} bytes", payload.len()));
    let known = dtype_bits(&manifest.dtype).is_some()
        || GgmlType::of_dtype(&manifest.dtype).is_some_and(|ggml| ggml.block.is_some());
    Some(match need {
        Some(need) => refusal.expected(format!("{need} bytes")),
        None if known => refusal.expected(format!("a size below 2^64 for {:?}", manifest.shape)),
        None => refusal.expected(format!("a dtype of known size, not {}", manifest.dtype)),
    })
}
