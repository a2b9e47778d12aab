//! The GPU of this instance.

use std::cell::RefCell;

use tabtune::device::{Device, DeviceKind};
use tabtune::error::Error;
use tabtune::gpu::launch::is_software;
use wasm_bindgen::prelude::*;

use crate::error::{JsResult, thrown};
use crate::values::{Report, plain};

thread_local! {
    static DEVICE: RefCell<Option<Device>> = const { RefCell::new(None) };
}

/// Opens the GPU → `DeviceInfo`. Call it once per wasm instance, before the first session.
#[wasm_bindgen(js_name = initDevice)]
pub async fn init_device() -> JsResult<Report> {
    let device = match DEVICE.with_borrow(Clone::clone) {
        Some(device) => device,
        None => Device::open(DeviceKind::Wgpu).await.map_err(thrown)?,
    };
    let info = plain(device.info())?;
    DEVICE.with_borrow_mut(|slot| *slot = Some(device));
    Ok(info)
}

/// Returns the open device.
pub fn device() -> JsResult<Device> {
    let absent = || {
        thrown(Error::NoAdapter {
            reason: "initDevice has not been called".into(),
        })
    };
    DEVICE.with_borrow(Clone::clone).ok_or_else(absent)
}

/// Returns whether the kernels are those for software adapters. Before the device is open, those of a GPU are assumed.
pub fn software() -> bool {
    DEVICE.with_borrow(|device| {
        device
            .as_ref()
            .is_some_and(|device| is_software(&device.inner()))
    })
}
