//! Refusals of files and rows, and sentences of warnings.

use std::fmt::Display;

use crate::error::{Refusal, Word};

/// A refusal of something else than what was expected.
pub(crate) fn refused(code: Word, expected: impl Display, found: impl Display) -> Refusal {
    Refusal::new(code).expected(expected).found(found)
}

/// The sentence of a warning, with the values of its subject, and of what was expected and found; an empty one is absent.
pub(crate) fn told(code: Word, values: [&str; 3]) -> String {
    Refusal::filled(code, values).to_string()
}
