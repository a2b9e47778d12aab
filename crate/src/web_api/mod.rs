//! The API for the browser's worker. Compiled for wasm only.

mod asked;
mod data;
mod error;
mod exports;
mod extract;
mod inspect;
mod interrupt;
mod measure;
mod model;
#[cfg(feature = "replay")]
mod oracle;
mod panic;
mod reports;
mod run;
mod session;
mod settings;
mod source;
mod stream;
mod tokens;

use std::cell::RefCell;

use wasm_bindgen::prelude::*;

use crate::device::{Device, DeviceKind};
use crate::gpu::launch::is_software;
use error::{JsResult, thrown};

pub use data::inspect_data;
pub use exports::verify_files;
pub use extract::extract_adapter;
pub use inspect::{inspect_file, inspect_model};
pub use interrupt::{clear_abort, request_abort};
pub use measure::measure_gpu;
pub use model::{ModelHandle, estimate};
#[cfg(feature = "replay")]
pub use panic::panic_for_test;
pub use panic::set_panic_hook;
pub use session::Session;
pub use settings::preview_schedule;
pub use stream::FileStream;
pub use tokens::{LoadedModel, TokenStream};

thread_local! {
    static DEVICE: RefCell<Option<Device>> = const { RefCell::new(None) };
}

/// Returns the version of the crate.
#[wasm_bindgen]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").into()
}

/// Opens the GPU → `DeviceInfo`. Call it once per wasm instance, before the first session.
#[wasm_bindgen(js_name = initDevice)]
pub async fn init_device() -> JsResult<JsValue> {
    let device = match DEVICE.with_borrow(Clone::clone) {
        Some(device) => device,
        None => Device::open(DeviceKind::Wgpu).await.map_err(thrown)?,
    };
    let info = plain(device.info())?;
    DEVICE.with_borrow_mut(|slot| *slot = Some(device));
    Ok(info)
}

/// Replays one file of recorded trajectories through the optimizers and schedules of this build → `ReplayReport`.
#[cfg(feature = "replay")]
#[wasm_bindgen]
pub async fn replay(file: String, bytes: Vec<u8>) -> JsResult<JsValue> {
    let report = crate::replay::replay(&file, &bytes, &device()?).await;
    plain(&report.map_err(thrown)?)
}

fn device() -> JsResult<Device> {
    let absent = || thrown(crate::Error::NoAdapter { reason: "initDevice has not been called".into() });
    DEVICE.with_borrow(Clone::clone).ok_or_else(absent)
}

/// Returns whether the kernels are those for software adapters. Before the device is open, those of a GPU are assumed.
fn software() -> bool {
    DEVICE.with_borrow(|device| device.as_ref().is_some_and(|device| is_software(&device.inner())))
}

/// Converts a report to a plain JavaScript object.
fn plain(value: &impl serde::Serialize) -> JsResult<JsValue> {
    Ok(value.serialize(&serde_wasm_bindgen::Serializer::json_compatible())?)
}
