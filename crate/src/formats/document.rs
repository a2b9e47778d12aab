//! Reads whole documents.

use super::mark::{GIT_LFS_POINTER, HTML, mark_of};
use super::refuse::{refuse_if, too_large};
use super::source::{ByteSource, read_range};
use crate::error::{Refusal, Result, word};

/// Reads a whole file.
///
/// # Errors
/// `source.too-large` if memory cannot hold it, `format.mismatch` for a `.json` file that is empty, a web page or a Git LFS pointer; and the
/// errors of the source.
pub fn read_whole(source: &dyn ByteSource) -> Result<Vec<u8>> {
    read_document(source, u64::MAX)
}

/// Reads a whole document of at most `limit` bytes.
pub(crate) fn read_document(source: &dyn ByteSource, limit: u64) -> Result<Vec<u8>> {
    refuse_if(source.len() > limit, || {
        too_large()
            .of(source.name())
            .expected(format!("at most {limit} bytes"))
            .found(source.len())
    })?;
    let bytes = read_range(source, 0, source.len())?;
    if source.name().to_ascii_lowercase().ends_with(".json") {
        refuse_other_document(source, &bytes)?;
    }
    Ok(bytes)
}

/// Refuses a file with the name of a JSON document that is something else because a download went wrong.
fn refuse_other_document(source: &dyn ByteSource, bytes: &[u8]) -> Result<()> {
    let refusal = Refusal::new(word!("format.mismatch"))
        .of(source.name())
        .expected("JSON");
    let refusal = match mark_of(bytes) {
        _ if bytes.trim_ascii().is_empty() => refusal
            .found("an empty file")
            .hint("the download went wrong: fetch the file again"),
        Some(mark) if [HTML, GIT_LFS_POINTER].contains(&mark) => mark.describe(refusal),
        _ => return Ok(()),
    };
    Err(refusal.into())
}
