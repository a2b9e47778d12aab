//! Opens model files and checks their tensors against the model's.

use std::rc::Rc;

use super::planned_parameters;
use crate::bundle::{Bundle, OpenOptions, open_bundle_with};
use crate::error::Result;
use crate::formats::ByteSource;

/// Opens the files of one model and compares their tensors with the model's, before a device is opened. Unexpected tensors outside the
/// blocks are left out, with a warning ([example](crate)).
///
/// # Errors
/// The errors of opening the files; `model.tensor.missing`, `model.tensor.unexpected` inside a block, `model.tensor.shape` and unreadable
/// dtypes, all of them together.
pub fn open_model(files: Vec<Rc<dyn ByteSource>>) -> Result<Bundle> {
    open_model_with(files, OpenOptions::default())
}

/// Opens the files of one model like [`open_model`], with options ([example](crate)).
///
/// # Errors
/// The errors of [`open_model`].
pub fn open_model_with(files: Vec<Rc<dyn ByteSource>>, options: OpenOptions) -> Result<Bundle> {
    let mut bundle = open_bundle_with(files, options)?;
    let planned = planned_parameters(&bundle.config)?;
    bundle.check_tensors(&planned)?;
    Ok(bundle)
}
