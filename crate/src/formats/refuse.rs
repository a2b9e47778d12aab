//! Refuses a file that fails a check.

use crate::error::{Refusal, Result, word};

/// Begins the refusal of something that is larger than memory, or than allowed.
pub(crate) fn too_large() -> Refusal {
    Refusal::new(word!("source.too-large"))
}

/// Refuses a file if something about it is `wrong`.
pub(crate) fn refuse_if(wrong: bool, refusal: impl FnOnce() -> Refusal) -> Result<()> {
    if wrong { Err(refusal().into()) } else { Ok(()) }
}
