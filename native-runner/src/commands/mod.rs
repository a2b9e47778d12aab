//! One module per command. Each takes arguments and prints lines.

pub mod adapter;
pub mod bench;
pub mod chat;
pub mod convert;
pub mod data;
pub mod delta;
pub mod developer;
pub mod estimate;
pub mod evaluate;
pub mod export;
pub mod generate;
pub mod inspect;
pub mod outgoing;
mod plan;
pub mod profile;
pub mod schedule;
pub mod score;
pub mod tokenize;
pub mod tokenizer;
pub mod train;
pub mod verify;

use std::path::Path;

use tabtune::Error;
use tabtune::bundle::Bundle;
use tabtune::config::{BaseStorage, Precision};
use tabtune::device::Device;
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune::tokenizer::{TextWarning, Tokenizer};
use tabtune::train::check_inference_limits;

use crate::args::{ApartArgs, DeviceName};
use crate::error::{Result, RunError};
use crate::files::{Wanted, open_wanted};
use crate::waits::block_on;

/// Result of a command that did not fail. `Bad` is a result too, with exit status 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Success.
    Good,
    /// A check that did not pass.
    Bad,
    /// Another exit status, such as that of a signal that ended a run, which is saved if it has an output folder.
    Status(u8),
}

/// Opens the device called `name`. Each process does this at most once.
///
/// # Errors
/// `device.no-adapter` if there is no usable GPU.
pub fn open_device(name: DeviceName) -> Result<Device> {
    Ok(block_on(Device::open(name.into()))?)
}

/// Loads the model of `bundle`, with its weights on `device`.
///
/// # Errors
/// Errors of reading the weights, and `device.lost`.
pub fn load_model(bundle: &Bundle, precision: Precision, device: &Device) -> Result<Model> {
    Ok(block_on(Model::from_bundle(
        bundle,
        precision,
        &device.inner(),
        &Interrupt::none(),
    ))?)
}

/// Opens the model at `path`, and the separate adapter if one is given.
///
/// # Errors
/// Errors of [`open_wanted`].
pub fn open_apart(path: &Path, args: &ApartArgs) -> Result<Bundle> {
    open_wanted(
        path,
        Wanted {
            adapter: args.adapter.as_deref(),
            apart: true,
            ..Wanted::default()
        },
    )
}

/// Loads the model that [`open_apart`] opened, with its weights on `device`.
///
/// # Errors
/// `device.limit` before anything is loaded, if the device cannot hold the model; with an adapter, weights that are not finite.
pub fn load_apart(bundle: &Bundle, args: &ApartArgs, device: &Device) -> Result<Model> {
    let default = if args.adapter.is_some() {
        BaseStorage::Stored
    } else {
        BaseStorage::F32
    };
    let storage = args.base_storage.map_or(default, BaseStorage::from);
    check_inference_limits(bundle, storage, device.info().limits)?;
    let model = block_on(Model::for_inference(
        bundle,
        storage,
        &device.inner(),
        &Interrupt::none(),
    ))?;
    if args.adapter.is_some() {
        model.check_finite().map_err(for_good)?;
    }
    Ok(model)
}

/// Replaces the hint about allowing such weights, which commands without training cannot do.
fn for_good(error: Error) -> Error {
    let Error::Refused(mut list) = error else {
        return error;
    };
    for refusal in &mut list {
        refusal.hint = Some("nothing can be computed with them: fetch the files again, or use an earlier checkpoint".into());
    }
    Error::Refused(list)
}

/// Logs warnings about a prompt or a conversation.
pub fn log_warnings(warnings: &[TextWarning]) {
    for warning in warnings {
        log::warn!("{} [{}]", warning.message, warning.code);
    }
}

/// Returns the tokenizer that came with the model at `path`.
///
/// # Errors
/// `cli.usage` if there is none, or the reason why its files were refused.
pub fn tokenizer_of<'a>(bundle: &'a Bundle, path: &Path) -> Result<&'a Tokenizer> {
    let absent = || {
        RunError::Usage(format!(
            "{}: no tokenizer next to the weights: expected tokenizer.json",
            path.display()
        ))
    };
    if bundle.tokenizer_refused().is_some() {
        return Ok(bundle.need_tokenizer()?);
    }
    bundle.tokenizer.as_ref().ok_or_else(absent)
}
