//! Converts reports to plain JavaScript objects.

use serde::Serialize;
use wasm_bindgen::JsValue;

use crate::error::JsResult;

/// Converts a report to a plain JavaScript object.
pub fn plain(value: &impl Serialize) -> JsResult<JsValue> {
    Ok(value.serialize(&serde_wasm_bindgen::Serializer::json_compatible())?)
}
