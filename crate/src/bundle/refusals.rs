//! Errors that are made in many places.

use std::fmt::Display;

use crate::error::{Error, Fault, Refusal, Result};

/// Fails with these refusals, if there are any.
pub(super) fn refuse_all(refusals: Vec<Refusal>) -> Result<()> {
    if refusals.is_empty() {
        Ok(())
    } else {
        Err(Error::Refused(refusals))
    }
}

/// Creates the error of a call that breaks the `rule` of `key`.
pub(super) fn invalid(key: &str, rule: impl Into<String>, found: impl Display) -> Error {
    Error::InvalidConfig(vec![Fault::new(key, rule, found)])
}
