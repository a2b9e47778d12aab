//! Refuses values that are NaN or infinite.

use crate::error::{Refusal, Result, Word, word};
use crate::formats::refuse_all;

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
