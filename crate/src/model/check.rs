//! Opens files as a bundle whose tensors are those of its model.

use super::planned_parameters;
use crate::bundle::{Bundle, OpenOptions, open_bundle_with};
use crate::error::Result;
use crate::formats::ByteSource;

/// Opens the files of one model and compares their tensors with the model's, before a device is opened. Every missing name, unexpected name
/// inside a block, different shape and unreadable dtype is listed; unexpected tensors elsewhere are left out, with a warning.
pub fn open_model(files: Vec<Box<dyn ByteSource>>) -> Result<Bundle> {
    open_model_with(files, OpenOptions::default())
}

/// Opens the files of one model like [`open_model`], with options.
pub fn open_model_with(files: Vec<Box<dyn ByteSource>>, options: OpenOptions) -> Result<Bundle> {
    let mut bundle = open_bundle_with(files, options)?;
    let planned = planned_parameters(&bundle.config)?;
    bundle.fit(&planned)?;
    Ok(bundle)
}
