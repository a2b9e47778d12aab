//! Errors as the plain objects that the worker turns into `TabtuneError`.

use serde::Serialize;
use wasm_bindgen::JsValue;

use crate::error::{Error, Refusal};

/// Result of an exported function.
pub type JsResult<T> = Result<T, JsValue>;

#[derive(Serialize)]
struct Thrown<'a> {
    kind: &'static str,
    code: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<&'a [Refusal]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tensor: Option<&'static str>,
}

/// The object that is thrown for `error`.
pub fn thrown(error: Error) -> JsValue {
    let refusal = match &error {
        Error::Refused(list) => Some(list.as_slice()),
        _ => None,
    };
    let (step, tensor) = match error {
        Error::NonFinite { step, tensor, .. } => (Some(step), Some(tensor)),
        Error::NonFiniteReleased { step, .. } => (Some(step), Some("grad_norm")),
        _ => (None, None),
    };
    let thrown = Thrown { kind: error.kind(), code: error.code(), message: error.to_string(), refusal, step, tensor };
    thrown.serialize(&serde_wasm_bindgen::Serializer::json_compatible()).unwrap_or_else(|_| JsValue::from_str(&error.to_string()))
}
