//! One module per command: arguments in, lines out.

pub mod adapter;
pub mod bench;
pub mod check;
pub mod convert;
pub mod delta;
pub mod evaluate;
pub mod export;
pub mod generate;
pub mod inspect;
pub mod outgoing;
pub mod profile;
pub mod replay;
pub mod schedule;
pub mod schema;
pub mod tokenize;
pub mod train;
pub mod verify;

use std::path::Path;

use tabtune::bundle::Bundle;
use tabtune::config::Precision;
use tabtune::device::Device;
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune::tokenizer::Tokenizer;

use crate::args::DeviceName;
use crate::error::{Result, RunError};
use crate::wait::wait;

/// The result of a command that did not fail. `Bad` is a result too, with exit status 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All well.
    Good,
    /// A check did not pass.
    Bad,
}

/// Opens the device called `name`; once per process.
pub fn open_device(name: DeviceName) -> Result<Device> {
    Ok(wait(Device::open(name.into()))?)
}

/// The model of `bundle`, its weights on `device`.
pub fn load_model(bundle: &Bundle, precision: Precision, device: &Device) -> Result<Model> {
    Ok(wait(Model::from_bundle(bundle, precision, &device.inner(), &Interrupt::none()))?)
}

/// The tokenizer that came with the model at `path`.
pub fn tokenizer_of<'a>(bundle: &'a Bundle, path: &Path) -> Result<&'a Tokenizer> {
    let absent = || RunError::Usage(format!("{}: no tokenizer beside the weights: expected tokenizer.json", path.display()));
    if bundle.tokenizer_refused().is_some() {
        return Ok(bundle.need_tokenizer()?);
    }
    bundle.tokenizer.as_ref().ok_or_else(absent)
}
