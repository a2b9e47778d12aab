//! Values that pass between the core and the worker.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tabtune::error::{Error, Fault, Result};
use tabtune_border::Named;
use wasm_bindgen::prelude::*;

#[wasm_bindgen(typescript_custom_section)]
const VALUES: &str = "
/** Settings, options or a document, under Rust's names. */
export type Values = Readonly<Record<string, unknown>>;
";

#[wasm_bindgen]
extern "C" {
    /// Values that the worker gives: plain data, under Rust's names.
    #[wasm_bindgen(typescript_type = "Values")]
    pub type Values;

    /// A report, which the worker parses.
    #[wasm_bindgen(typescript_type = "unknown")]
    pub type Report;
}

/// Converts a report to plain data, with the names of its fields in TypeScript.
pub fn plain(report: &impl Serialize) -> std::result::Result<Report, JsValue> {
    let serializer = serde_wasm_bindgen::Serializer::json_compatible();
    Ok(Named(report).serialize(&serializer)?.unchecked_into())
}

fn invalid(key: &str, rule: &str, error: impl std::fmt::Display) -> Error {
    Error::InvalidConfig(vec![Fault::new(key, rule, error)])
}

/// Reads the values of `key`.
pub fn read<T: DeserializeOwned>(key: &str, rule: &str, given: Values) -> Result<T> {
    serde_json::from_value(value(given)?).map_err(|error| invalid(key, rule, error))
}

/// Returns the values as JSON.
pub fn value(given: Values) -> Result<Value> {
    let mut value = serde_wasm_bindgen::from_value(given.into())
        .map_err(|error| invalid("options", "plain values", error))?;
    whole(&mut value);
    Ok(value)
}

/// Makes integers of whole numbers beyond 2⁵³, as JSON has them: JavaScript writes them without a point.
fn whole(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(whole),
        Value::Object(fields) => fields.values_mut().for_each(whole),
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            // JavaScript writes an exponent from 10²¹ on, and integers have 64 bits.
            if float.fract() == 0.0 && (-(2f64.powi(63))..2f64.powi(64)).contains(&float) {
                *number = if float < 0.0 {
                    (float as i64).into()
                } else {
                    (float as u64).into()
                };
            }
        }
        _ => {}
    }
}
