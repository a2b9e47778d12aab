//! The version of the core, and its compiled module.

use wasm_bindgen::prelude::*;

/// Returns the version of the crate.
#[wasm_bindgen]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").into()
}

/// Returns the compiled module of this core, a `WebAssembly.Module`, from which another worker can start.
#[wasm_bindgen(unchecked_return_type = "WebAssembly.Module")]
pub fn compiled() -> JsValue {
    wasm_bindgen::module()
}
