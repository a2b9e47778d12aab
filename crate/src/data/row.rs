//! One row of a data file.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Value};

use super::json::ROW_BYTES;
use crate::error::shown;

/// A row, or the reason why it cannot be read.
pub(super) type Row = std::result::Result<Map<String, Value>, String>;

/// Returns the fault of a row that is too long.
pub(super) fn too_long() -> String {
    format!("a row of more than {} MiB", ROW_BYTES >> 20)
}

/// Parses the JSON text of a row that begins at `line` of its file.
///
/// # Errors
/// The reason why it is not an object.
pub(super) fn parsed(text: &str, line: usize) -> Row {
    value(text, line).and_then(object)
}

/// Parses a JSON text that begins at `line` of its file.
///
/// # Errors
/// The reason why it cannot be read.
pub(super) fn value(text: &str, line: usize) -> std::result::Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(Unique(value)) => Ok(value),
        Err(error) => {
            let reason = error.to_string();
            let words = reason.split(" at line ").next().unwrap_or_default();
            // A key that is there twice is JSON.
            let kind = if error.is_data() { "" } else { "not JSON: " };
            Err(format!("{kind}{} at line {} column {}", shown(words), line + error.line().saturating_sub(1), error.column()))
        }
    }
}

/// Returns the fields of an object.
///
/// # Errors
/// A description of the value that was found in its place.
pub(super) fn object(value: Value) -> Row {
    match value {
        Value::Object(fields) => Ok(fields),
        Value::Array(items) if items.iter().any(is_message) => Err("a list of messages, which {\"messages\": […]} makes a row".to_owned()),
        other => Err(format!("{}, which is not an object", shown(&other.to_string()))),
    }
}

/// Returns true for a message of a conversation.
pub(super) fn is_message(item: &Value) -> bool {
    [["role", "content"], ["role", "tool_calls"], ["from", "value"]].iter().any(|keys| keys.iter().all(|key| item.get(key).is_some()))
}

/// A JSON value whose objects have each key once. Of a key that is there twice, serde_json drops the first value.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(Values).map(Self)
    }
}

struct Values;

impl<'de> Visitor<'de> for Values {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> std::result::Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> std::result::Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> std::result::Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> std::result::Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> std::result::Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> std::result::Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> std::result::Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Unique(item)) = list.next_element()? {
            items.push(item);
        }
        Ok(items.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> std::result::Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = object.next_key::<String>()? {
            let Unique(value) = object.next_value()?;
            match fields.entry(key) {
                Entry::Vacant(place) => drop(place.insert(value)),
                Entry::Occupied(place) => return Err(A::Error::custom(format!("the key {} twice", shown(place.key())))),
            }
        }
        Ok(fields.into())
    }
}
