//! Converts errors to the plain objects that the worker turns into `TabtuneError`.

use tabtune::error::Error;
use tabtune_border::{Thrown, renamed};
use wasm_bindgen::JsValue;

use crate::values::plain;

/// Result of an exported function.
pub type JsResult<T> = Result<T, JsValue>;

/// Returns the object that is thrown for `error`.
pub fn thrown(error: Error) -> JsValue {
    let error = renamed(error);
    let text = |_| JsValue::from_str(&error.to_string());
    plain(&Thrown::of(&error)).map_or_else(text, Into::into)
}
