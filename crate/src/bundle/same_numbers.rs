//! Compares the values of two tensors.

use super::entry::Entry;
use super::files::Files;
use super::pieces::{PIECE_ELEMENTS, Pieces};
use crate::error::Result;
use crate::formats::{Encoding, for_each_chunk};

/// Returns whether two tensors have the same shape and numbers: the same bytes of one dtype, or equal values of two dtypes that f32 holds; with
/// `unread` such values are assumed to be equal.
pub(super) fn same_numbers(files: &Files, a: &Entry, b: &Entry, unread: bool) -> Result<bool> {
    let exact = |entry: &Entry| {
        matches!(
            entry.encoding,
            Some(Encoding::F32 | Encoding::F16 | Encoding::Bf16)
        )
    };
    if a.shape == b.shape && a.dtype != b.dtype && exact(a) && exact(b) {
        return if unread {
            Ok(true)
        } else {
            same_values(files, a, b)
        };
    }
    if a.dtype != b.dtype
        || a.shape != b.shape
        || a.stored.bytes.is_none()
        || a.stored.bytes != b.stored.bytes
    {
        return Ok(false);
    }
    if unread {
        return Ok(true);
    }
    let mut same = true;
    let mut at = b.stored.begin;
    let mut other = Vec::new();
    for_each_chunk(
        files[a.source].as_ref(),
        a.stored.begin,
        a.stored.end(),
        1,
        |piece| {
            if same {
                other.resize(piece.len(), 0);
                files[b.source].read_at(at, &mut other)?;
                same = other == piece;
                at += piece.len() as u64;
            }
            Ok(())
        },
    )?;
    Ok(same)
}

/// Returns whether two tensors of one shape have equal values, bit for bit in f32.
fn same_values(files: &Files, a: &Entry, b: &Entry) -> Result<bool> {
    let mut of_a = Pieces::new(a, files[a.source].as_ref(), PIECE_ELEMENTS)?;
    let mut of_b = Pieces::new(b, files[b.source].as_ref(), PIECE_ELEMENTS)?;
    loop {
        match (of_a.next_piece()?, of_b.next_piece()?) {
            (None, None) => return Ok(true),
            (Some((_, a)), Some((_, b)))
                if a.iter()
                    .map(|value| value.to_bits())
                    .eq(b.iter().map(|value| value.to_bits())) => {}
            _ => return Ok(false),
        }
    }
}
