//! Refusals of the documents of a tokenizer, and of texts that it cannot encode.

use std::fmt::Display;

use serde::Deserialize;

use crate::error::{Error, Refusal, Result, Word, shown};
use crate::formats::{Flaw, foreign, not_json};

/// The refusal of a part of a document or a text, when the tokenizer is made.
pub(super) fn refused(code: Word, file: &str, expected: impl Display) -> Refusal {
    Refusal::new(code).stage("bind").of(file).expected(expected)
}

/// The refusal of `what` for a reason that a library states.
pub(super) fn bad(what: &str, reason: impl ToString) -> Error {
    // Messages of the libraries may quote the file.
    Error::Tokenizer {
        what: what.to_owned(),
        reason: shown(&reason.to_string()),
    }
}

/// Returns the refusal of the document `what`, in whose place there is something else.
pub(super) fn flawed(what: &str, flaw: &Flaw) -> Error {
    Error::Tokenizer {
        what: what.to_owned(),
        reason: flaw.to_string(),
    }
}

/// Returns the refusal of the document `what`, whose `bytes` a library could not read as JSON.
pub(super) fn unread(what: &str, bytes: &[u8], reason: impl ToString) -> Error {
    not_json(bytes).map_or_else(|| bad(what, reason), |flaw| flawed(what, &flaw))
}

/// Reads the JSON document `what`. The message of a hub may be JSON too, and is refused.
pub(crate) fn read_json<'a, T: Deserialize<'a>>(what: &str, bytes: &'a [u8]) -> Result<T> {
    match foreign(bytes) {
        Some(flaw) => Err(flawed(what, &flaw)),
        None => serde_json::from_slice(bytes).map_err(|error| unread(what, bytes, error)),
    }
}

pub(super) fn unencodable(reason: impl ToString) -> Error {
    let mut reason = reason.to_string();
    // The words of the library for a vocabulary without an unknown token.
    let absent = ["`unk_id` is missing", "token from the vocabulary"];
    if absent.iter().any(|words| reason.contains(words)) {
        "the vocabulary has no token for one of its characters and none for unknown characters"
            .clone_into(&mut reason);
    }
    Error::TextNotEncodable { reason }
}
