//! Refusal of what tabtune does not have.

use std::fmt::Display;

use crate::error::{Error, shown};

/// Returns the refusal of a key whose value asks for something that tabtune does not have.
pub(crate) fn unsupported(what: &str, found: impl Display, supported: &str) -> Error {
    Error::UnsupportedModel {
        what: shown(what),
        found: shown(&found.to_string()),
        supported: supported.to_string(),
    }
}
