//! The example of crate/README.md, "Any Burn module", for a page: a module trains, is saved and resumed with equal bits.
#![cfg(target_family = "wasm")]

use tabtune::device::{Device, DeviceKind};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// Tells the page of a panic, after which the instance traps.
    #[wasm_bindgen(js_namespace = globalThis)]
    fn panicked(message: &str);
}

macro_rules! example {
    ($name:ident) => {
        #[allow(dead_code, reason = "the example's own main needs a CPU device")]
        mod $name {
            include!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".rs"));

            pub async fn run(device: &Device) -> tabtune::Result<()> {
                example(device).await
            }
        }
    };
}

example!(module);
example!(changed);

/// Changes the lowest bit of the last value.
fn changed(mut file: Vec<u8>) -> Vec<u8> {
    let at = file.len() - 4;
    file[at] ^= 1;
    file
}

/// Runs the example on the page's adapter; `change` changes a bit of the weights that it loads, which makes it panic.
#[wasm_bindgen]
pub async fn run(change: bool) -> Result<(), JsError> {
    std::panic::set_hook(Box::new(|panic| panicked(&panic.to_string())));
    let device = Device::open(DeviceKind::Wgpu).await.map_err(thrown)?;
    let device = device.autodiff();
    let result = match change {
        true => changed::run(&device).await,
        false => module::run(&device).await,
    };
    result.map_err(thrown)
}

fn thrown(error: tabtune::Error) -> JsError {
    JsError::new(&error.to_string())
}
