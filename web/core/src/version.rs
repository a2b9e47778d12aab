//! The version of the core.

use wasm_bindgen::prelude::*;

/// Returns the version of the crate.
#[wasm_bindgen]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").into()
}
