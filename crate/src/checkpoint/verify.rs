//! Verifies the files of a checkpoint that is used as a model.

use std::rc::Rc;

use super::manifest;
use super::pieces::{check_bytes, check_length};
use crate::error::{Error, Result};
use crate::formats::ByteSource;

/// Verifies those of the `files` of a model that the `checkpoint.json` next to them names. A document of another program, or of another
/// version of the format, states nothing about them.
///
/// # Errors
/// `checkpoint.file.length` and `checkpoint.chunk.hash`; `checkpoint.corrupt` for a document that cannot be read.
pub fn verify_as_model(document: &dyn ByteSource, files: &[Rc<dyn ByteSource>]) -> Result<()> {
    let manifest = match manifest::read(document) {
        Ok(manifest) => manifest,
        Err(Error::CheckpointVersion { .. }) => return Ok(()),
        Err(error) => {
            return if manifest::is_ours(document)? {
                Err(error)
            } else {
                Ok(())
            };
        }
    };
    for file in files {
        let mut records = manifest.files.iter();
        if let Some(record) = records.find(|record| record.name == file.name()) {
            check_length(file.as_ref(), record)?;
            check_bytes(file.as_ref(), record)?;
        }
    }
    Ok(())
}
