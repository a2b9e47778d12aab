//! Compares the values of two tensors.

use super::tensors::Bundle;
use crate::error::{Result, word};
use crate::families::names;
use crate::formats::{ByteSource, Encoding, for_each_chunk};
use crate::state::{PIECE_ELEMENTS, Tensor};

impl Bundle {
    /// Drops a head that is a copy of the embedding from the `tensors` of the model, with a warning. Says if it was one; `None` if one of the
    /// two is absent. With `unread` no values are compared.
    pub(super) fn drop_copied_head(
        &mut self,
        tensors: &mut Vec<Tensor>,
        unread: bool,
    ) -> Result<Option<bool>> {
        let embedding = names::embedding(self.config.architecture);
        let [head, embedding] =
            [names::HEAD, embedding].map(|name| tensors.iter().position(|one| one.name == name));
        let (Some(head), Some(embedding)) = (head, embedding) else {
            return Ok(None);
        };
        let same = same_numbers(&tensors[head], &tensors[embedding], unread)?;
        if same {
            self.warn(word!("model.tied.copy"), names::HEAD);
            tensors.remove(head);
        }
        Ok(Some(same))
    }
}

/// Compares two tensors: they are the same if they have one shape, and the same bytes of one dtype, or equal values of two dtypes that f32
/// holds; with `unread` such values are assumed to be equal.
fn same_numbers(a: &Tensor, b: &Tensor, unread: bool) -> Result<bool> {
    if a.shape != b.shape {
        return Ok(false);
    }
    if a.dtype != b.dtype {
        let exact = |tensor: &Tensor| {
            matches!(
                tensor.encoding(),
                Some(Encoding::F32 | Encoding::F16 | Encoding::Bf16)
            )
        };
        return Ok(exact(a) && exact(b) && (unread || same_values(a, b)?));
    }
    let (Some(of_a), Some(of_b)) = (a.span(), b.span()) else {
        return Ok(false);
    };
    if unread || of_a.bytes != of_b.bytes {
        return Ok(of_a.bytes == of_b.bytes);
    }
    let (mut same, mut at, mut other) = (true, of_b.begin, Vec::new());
    let end = of_a.begin + of_a.bytes;
    for_each_chunk(&of_a.source, of_a.begin, end, 1, |piece| {
        if same {
            other.resize(piece.len(), 0);
            of_b.source.read_at(at, &mut other)?;
            same = other == piece;
            at += piece.len() as u64;
        }
        Ok(())
    })?;
    Ok(same)
}

/// Compares the values of two tensors of one shape, bit for bit in f32.
fn same_values(a: &Tensor, b: &Tensor) -> Result<bool> {
    let mut of_a = a.pieces(PIECE_ELEMENTS)?;
    let mut of_b = b.pieces(PIECE_ELEMENTS)?;
    fn bits(values: &[f32]) -> impl Iterator<Item = u32> {
        values.iter().map(|value| value.to_bits())
    }
    loop {
        match (of_a.next_piece()?, of_b.next_piece()?) {
            (None, None) => return Ok(true),
            (Some((_, a)), Some((_, b))) if bits(a).eq(bits(b)) => {}
            _ => return Ok(false),
        }
    }
}
