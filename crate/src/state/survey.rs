//! Reads the values of a tensor in one pass: computes its digest, and finds faulty values. Refuses those that are NaN or infinite.

use super::tensor::Tensor;
use crate::error::{Refusal, Result, Word, refuse_all, word};
use crate::formats::{Encoding, Hasher, count_non_finite, dtype_bits};

/// Number of blocks that are decoded at once: the copy in f32 stays small.
const BLOCKS: usize = 1_024;

/// Findings of a pass over a tensor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Number of NaN and infinite values.
    pub(crate) non_finite: u64,
    /// Index of the first such value.
    pub(crate) first: Option<u64>,
    /// True if a tensor of BOOL has a byte other than 0 and 1.
    pub(crate) bad_bool: bool,
}

/// Reads the tensor once; it keeps its digest.
pub(crate) async fn survey(tensor: &Tensor) -> Result<Survey> {
    let mut found = Survey::default();
    let mut hasher = tensor.known_digest().is_none().then(Hasher::new);
    let mut elements = 0;
    let blocks = tensor
        .encoding()
        .filter(|encoding| matches!(encoding, Encoding::Blocks(_)));
    // F4 and F6 have no values that are not finite; their elements are not counted.
    let plain =
        dtype_bits(&tensor.dtype).map_or(1, |bits| usize::try_from(bits / 8).unwrap_or(1).max(1));
    let unit = blocks.map_or(plain, |encoding| encoding.unit().0);
    let mut values = Vec::new();
    tensor
        .for_each_whole(unit, |piece| {
            if let Some(hasher) = &mut hasher {
                hasher.update(piece);
            }
            found.bad_bool |= tensor.dtype == "BOOL" && piece.iter().any(|&byte| byte > 1);
            match blocks {
                Some(encoding) => {
                    for part in piece.chunks(unit * BLOCKS) {
                        values.clear();
                        encoding.decode(part, &mut values);
                        found.add(elements, values.iter().map(|value| !value.is_finite()));
                        elements += values.len() as u64;
                    }
                }
                None => {
                    if count_non_finite(&tensor.dtype, piece) > 0 {
                        found.add(
                            elements,
                            piece
                                .chunks(unit)
                                .map(|value| count_non_finite(&tensor.dtype, value) > 0),
                        );
                    }
                    elements += (piece.len() / unit) as u64;
                }
            }
            Ok(())
        })
        .await?;
    if let Some(hasher) = hasher {
        tensor.remember(hasher.finish());
    }
    Ok(found)
}

impl Survey {
    /// Counts the values that are not finite: `odd` holds a flag for each value, from the value `first` on.
    fn add(&mut self, first: u64, odd: impl Iterator<Item = bool>) {
        for (at, _) in (first..).zip(odd).filter(|(_, odd)| *odd) {
            self.first.get_or_insert(at);
            self.non_finite += 1;
        }
    }
}

/// Refuses weights with NaN or infinite values, all tensors at once: `counts` are those of each tensor that was read.
///
/// # Errors
/// `model.non-finite` for each tensor with a count above 0.
pub fn refuse_non_finite(counts: &[(String, u64)]) -> Result<()> {
    refuse_non_finite_as(word!("model.non-finite"), counts)
}

/// Refuses such weights with another code.
pub(crate) fn refuse_non_finite_as(word: Word, counts: &[(String, u64)]) -> Result<()> {
    let refuse = |(name, count): &(String, u64)| {
        Refusal::new(word)
            .stage("read")
            .subject(name)
            .expected("finite values")
            .found(format!("{count} NaN or infinite"))
            .hint("allow it (allowNonFinite, --allow-non-finite) if these weights never count")
    };
    let wrong = counts.iter().filter(|(_, count)| *count > 0);
    refuse_all(wrong.map(refuse).collect())
}
