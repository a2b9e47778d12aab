//! JSON of our own documents: a key stands once in its object, nesting is bounded, and every value is read with its path.

use std::mem::discriminant;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::bundle::json::{self, JsonFault};

/// Maximum depth of a document.
const MAX_DEPTH: usize = 32;

/// Where a document is wrong, and how.
pub(super) struct Wrong {
    /// Path of the value, its keys separated by `/`.
    pub(super) path: String,
    /// What is wrong with it.
    pub(super) found: String,
}

/// The document that `text` is.
pub(super) fn document(text: &str) -> Result<Value, Wrong> {
    let wrong = |path: &str, found: String| Wrong { path: path.to_string(), found };
    match json::parse(text, MAX_DEPTH) {
        Ok(_) => serde_json::from_str(text).map_err(|error| wrong("", error.to_string())),
        Err(JsonFault::Syntax { at }) => Err(wrong("", format!("no JSON at byte {at}"))),
        Err(JsonFault::Depth { .. }) => Err(wrong("", format!("more than {MAX_DEPTH} levels"))),
        Err(JsonFault::Duplicate { path, .. }) => Err(wrong(&path, "a key that stands twice".to_string())),
    }
}

/// The value at `path` as a `T`. Types are stricter here than by themselves: an object is not written as the list of its fields, nor a word
/// as an object.
pub(super) fn typed<T: Serialize + DeserializeOwned>(value: Value, path: &str) -> Result<T, Wrong> {
    let wrong = |found: String| Wrong { path: path.to_string(), found };
    let typed: T = T::deserialize(&value).map_err(|error| wrong(error.to_string()))?;
    let written = serde_json::to_value(&typed).map_err(|error| wrong(error.to_string()))?;
    if alike(&value, &written) { Ok(typed) } else { Err(wrong("a list or an object in the place of the other".to_string())) }
}

/// Whether two documents have values of the same kinds, as far as both have them.
fn alike(given: &Value, written: &Value) -> bool {
    match (given, written) {
        (Value::Array(given), Value::Array(written)) => given.iter().zip(written).all(|(given, written)| alike(given, written)),
        (Value::Object(given), Value::Object(written)) => {
            given.iter().all(|(key, given)| written.get(key).is_none_or(|written| alike(given, written)))
        }
        _ => discriminant(given) == discriminant(written),
    }
}

/// The object at `path`.
pub(super) fn object(value: Value, path: &str) -> Result<Map<String, Value>, Wrong> {
    if let Value::Object(object) = value { Ok(object) } else { Err(Wrong { path: path.to_string(), found: "no object".to_string() }) }
}

/// The fields of an object, each taken once.
pub(super) struct Fields(pub(super) Map<String, Value>);

impl Fields {
    /// The field `key`; `null` where it is absent.
    pub(super) fn value(&mut self, key: &str) -> Value {
        self.0.remove(key).unwrap_or_default()
    }

    /// The field `key` as a `T`.
    pub(super) fn take<T: Serialize + DeserializeOwned>(&mut self, key: &str) -> Result<T, Wrong> {
        typed(self.value(key), key)
    }

    /// Refuses a field that nobody took.
    pub(super) fn end(self) -> Result<(), Wrong> {
        match self.0.keys().next() {
            Some(key) => Err(Wrong { path: key.clone(), found: "an unknown field".to_string() }),
            None => Ok(()),
        }
    }
}
