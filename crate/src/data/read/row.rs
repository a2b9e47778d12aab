//! One row of a data file.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Value};

use crate::error::shown;

/// Maximum length of a row in bytes.
pub(super) const ROW_BYTES: usize = 64 << 20;

/// The fields of an object of JSON.
pub(crate) type Fields = Map<String, Value>;

/// A row, or the reason why it cannot be read.
pub(super) type Row = Result<Fields, String>;

/// Words after the number of objects in the fault of several in the place of one row.
pub(crate) const SEVERAL: &str = "objects in the place of one";

/// Returns the fault of a row that is too long.
pub(super) fn too_long() -> String {
    format!("a row of more than {} MiB", ROW_BYTES >> 20)
}

/// Parses the JSON text of a row that begins at `line` of its file.
///
/// # Errors
/// The reason why it is not an object.
pub(super) fn parsed(text: &str, line: usize) -> Row {
    value(text, line)
        .and_then(object)
        .map_err(|fault| several(text).unwrap_or(fault))
}

/// Returns the fault of a text that has several objects, one after another.
fn several(text: &str) -> Option<String> {
    let objects = serde_json::Deserializer::from_str(text).into_iter::<Fields>();
    let count = objects
        .map(|object| object.ok().map(|_| 1usize))
        .sum::<Option<usize>>()?;
    (count > 1).then(|| format!("{count} {SEVERAL}"))
}

/// Parses a JSON text that begins at `line` of its file.
///
/// # Errors
/// The reason why it cannot be read.
pub(super) fn value(text: &str, line: usize) -> Result<Value, String> {
    let large = Cell::new(false);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = Values { large: &large }.deserialize(&mut deserializer);
    match read.and_then(|value| deserializer.end().map(|()| value)) {
        Ok(value) => match large.get().then(|| long_integer(text)).flatten() {
            Some(number) => Err(format!(
                "the integer {}, which needs more than 64 bits: write it as a text",
                shown(number)
            )),
            None => Ok(value),
        },
        Err(error) => {
            let reason = error.to_string();
            let words = reason.split(" at line ").next().unwrap_or_default();
            // A key that is there twice is JSON.
            let kind = match (error.is_data(), words) {
                (true, _) => "",
                _ if is_python(text) => "Python's notation, which json.dumps writes as JSON: ",
                (_, "recursion limit exceeded") => "too many levels of lists and objects: ",
                _ if ["NaN", "Infinity"].iter().any(|word| text.contains(word)) => {
                    "not JSON, which has no NaN and Infinity (null says that a value is absent): "
                }
                _ => "not JSON: ",
            };
            Err(format!(
                "{kind}{} at line {} column {}",
                shown(words),
                line + error.line().saturating_sub(1),
                error.column()
            ))
        }
    }
}

/// Returns true for a dictionary, or a list of such, as Python's `str` writes it.
pub(crate) fn is_python(text: &str) -> bool {
    text.trim_start()
        .trim_start_matches('[')
        .trim_start()
        .starts_with("{'")
}

/// Finds an integer in a JSON text that needs more than 64 bits, as it is written.
fn long_integer(text: &str) -> Option<&str> {
    let is_long = |number: &&str| {
        let digits = number.strip_prefix('-').unwrap_or(number);
        let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err()
    };
    let (mut in_string, mut escaped, mut from) = (false, false, 0);
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        if in_string {
            (escaped, in_string) = (!escaped && c == '\\', escaped || c != '"');
            from = at + c.len_utf8();
        } else if !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '.') {
            if let Some(number) = text.get(from..at).filter(is_long) {
                return Some(number);
            }
            in_string = c == '"';
            from = at + c.len_utf8();
        }
    }
    None
}

/// Returns the fields of an object.
///
/// # Errors
/// A description of the value that was found in its place.
pub(super) fn object(value: Value) -> Row {
    match value {
        Value::Object(fields) => Ok(fields),
        Value::Array(items) if items.iter().any(is_message) => {
            Err("a list of messages, which {\"messages\": […]} makes a row".to_owned())
        }
        other => Err(format!(
            "{}, which is not an object",
            shown(&other.to_string())
        )),
    }
}

/// Returns true for a message of a conversation.
pub(super) fn is_message(item: &Value) -> bool {
    let has = |keys: [&str; 2]| keys.iter().all(|key| item.get(key).is_some());
    has(["role", "content"]) || has(["role", "tool_calls"]) || has(["from", "value"])
}

/// Returns true for the fields of a message that says something.
pub(super) fn is_plain_message(fields: &Fields) -> bool {
    let has = |keys: [&str; 2]| keys.iter().all(|key| fields.contains_key(*key));
    has(["role", "content"]) || has(["from", "value"])
}

/// Reads JSON whose objects have each key once: of a key that is there twice, serde_json drops the first value.
#[derive(Clone, Copy)]
struct Values<'a> {
    /// Becomes true for a number beyond 64 bits: an integer among them has lost digits.
    large: &'a Cell<bool>,
}

impl<'de> DeserializeSeed<'de> for Values<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Values<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        self.large
            .set(self.large.get() || value.abs() >= i64::MAX as f64);
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(self)? {
            items.push(item);
        }
        Ok(items.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = object.next_key::<String>()? {
            let value = object.next_value_seed(self)?;
            match fields.entry(key) {
                Entry::Vacant(place) => drop(place.insert(value)),
                Entry::Occupied(place) => {
                    let fault = format!("the key {} twice", shown(place.key()));
                    return Err(A::Error::custom(fault));
                }
            }
        }
        Ok(fields.into())
    }
}
