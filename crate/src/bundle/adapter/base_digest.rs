//! The digest of the weights of a base (crate/FORMATS.md, "JSON state dict"), for adapters that state it.

use std::collections::BTreeMap;

use crate::bundle::decode::Encoding;
use crate::bundle::digest::{Digest, Hasher, leaf, weights_digest};
use crate::bundle::encode::{Encoder, TensorType};
use crate::bundle::names::Layout;
use crate::bundle::pieces::{PIECE_ELEMENTS, stored_row};
use crate::bundle::source::for_each_chunk;
use crate::bundle::tensors::{Bundle, Entry};
use crate::error::Result;

/// Reads all tensors. Their bytes count in Hugging Face's layout, as every container of the same weights has them.
pub(super) fn base_digest(bundle: &Bundle) -> Result<Digest> {
    let mut leaves = BTreeMap::new();
    for (name, entry) in &bundle.entries {
        let mut hasher = Hasher::new();
        let dense = match entry.encoding {
            Some(Encoding::F32) => Some(TensorType::F32),
            Some(Encoding::F16) => Some(TensorType::F16),
            Some(Encoding::Bf16) => Some(TensorType::Bf16),
            _ => None,
        };
        match dense {
            Some(dense) if entry.layout != Layout::Same => {
                let (mut encoder, mut bytes) = (Encoder::new(dense), Vec::new());
                bundle.for_each_piece(name, PIECE_ELEMENTS, |_, values| {
                    bytes.clear();
                    encoder.push(values, &mut bytes);
                    hasher.update(&bytes);
                    Ok(())
                })?;
                encoder.finish(name)?;
            }
            _ => stored_bytes(bundle, entry, &mut hasher)?,
        }
        let shape: Vec<u64> = entry.shape.iter().map(|&dim| dim as u64).collect();
        leaves.insert(name.clone(), leaf(name, &entry.dtype, &shape, hasher.finish()));
    }
    Ok(weights_digest(&leaves))
}

/// The bytes as they are stored; rows of blocks that are stored in another order are moved whole.
fn stored_bytes(bundle: &Bundle, entry: &Entry, hasher: &mut Hasher) -> Result<()> {
    let Some(end) = entry.end else { return Ok(()) };
    let source = bundle.files[entry.source].as_ref();
    let rows = entry.shape.first().map_or(1, |&rows| rows as u64);
    let (heads, row) = match entry.layout {
        Layout::PairedRows(heads) if heads > 0 && rows.is_multiple_of(2 * heads as u64) => (heads as u64, (end - entry.begin) / rows),
        _ => (0, 0),
    };
    if heads == 0 {
        return for_each_chunk(source, entry.begin, end, 1, |piece| {
            hasher.update(piece);
            Ok(())
        });
    }
    for n in 0..rows {
        let from = entry.begin + stored_row(n, rows / heads) * row;
        for_each_chunk(source, from, from + row, 1, |piece| {
            hasher.update(piece);
            Ok(())
        })?;
    }
    Ok(())
}
