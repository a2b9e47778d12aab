//! Refusals of a part of a file.

use crate::error::{Refusal, Word};

/// Begins the refusal of `subject` in the file `artifact`.
pub(super) fn refused(code: Word, artifact: &str, subject: &str) -> Refusal {
    Refusal::new(code).of(artifact).subject(subject)
}
