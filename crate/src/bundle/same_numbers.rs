//! Compares the values of two tensors.

use crate::error::Result;
use crate::formats::{ByteSource, Encoding, for_each_chunk};
use crate::state::{PIECE_ELEMENTS, Tensor};

/// Returns whether two tensors have the same shape and numbers: the same bytes of one dtype, or equal values of two dtypes that f32 holds; with
/// `unread` such values are assumed to be equal.
pub(super) fn same_numbers(a: &Tensor, b: &Tensor, unread: bool) -> Result<bool> {
    let exact = |tensor: &Tensor| {
        matches!(
            tensor.encoding(),
            Some(Encoding::F32 | Encoding::F16 | Encoding::Bf16)
        )
    };
    if a.shape == b.shape && a.dtype != b.dtype && exact(a) && exact(b) {
        return if unread { Ok(true) } else { same_values(a, b) };
    }
    let (Some(of_a), Some(of_b)) = (a.span(), b.span()) else {
        return Ok(false);
    };
    if a.dtype != b.dtype || a.shape != b.shape || of_a.bytes != of_b.bytes {
        return Ok(false);
    }
    if unread {
        return Ok(true);
    }
    let mut same = true;
    let mut at = of_b.begin;
    let mut other = Vec::new();
    for_each_chunk(
        &of_a.source,
        of_a.begin,
        of_a.begin + of_a.bytes,
        1,
        |piece| {
            if same {
                other.resize(piece.len(), 0);
                of_b.source.read_at(at, &mut other)?;
                same = other == piece;
                at += piece.len() as u64;
            }
            Ok(())
        },
    )?;
    Ok(same)
}

/// Returns whether two tensors of one shape have equal values, bit for bit in f32.
fn same_values(a: &Tensor, b: &Tensor) -> Result<bool> {
    let mut of_a = a.pieces(PIECE_ELEMENTS)?;
    let mut of_b = b.pieces(PIECE_ELEMENTS)?;
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
