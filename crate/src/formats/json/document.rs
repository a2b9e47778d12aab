//! JSON documents of tabtune's own kinds: a key occurs once in its object, nesting is bounded, and every value is read together with its path.
//! Callers add the error code of their kind of document to [`Wrong`].

use std::fmt::Display;

use serde::de::Deserialize;

use super::read::read;
use super::scan::parse;
use super::value::{Json, JsonFault};

/// Maximum depth of a document.
pub(crate) const MAX_DEPTH: usize = 32;
/// Maximum length of a value that is read as a whole; only lists and objects that are walked may be longer.
const MAX_VALUE_BYTES: usize = 512 << 10;

/// Location and description of a fault in a document.
pub(crate) struct Wrong {
    /// Path of the value, its keys separated by `/`; empty for the document.
    pub(crate) path: String,
    /// Description of the fault.
    pub(crate) found: String,
}

impl Wrong {
    pub(crate) fn new(path: &str, found: impl Display) -> Self {
        Self { path: path.to_string(), found: found.to_string() }
    }
}

/// Parses `text` as a document.
pub(crate) fn document(text: &str) -> Result<Json<'_>, Wrong> {
    parse(text, MAX_DEPTH).map_err(|fault| match fault {
        JsonFault::Syntax { at } => Wrong::new("", format!("no JSON at byte {at}")),
        JsonFault::Depth { .. } => Wrong::new("", format!("more than {MAX_DEPTH} levels")),
        JsonFault::Duplicate { path, .. } => Wrong::new(&path, "a key that stands twice"),
    })
}

/// Reads the value at `path` as a `T`.
pub(crate) fn typed<'a, T: Deserialize<'a>>(value: Json<'a>, path: &str) -> Result<T, Wrong> {
    read(value).map_err(|error| Wrong::new(path, error))
}

/// The fields of an object.
pub(crate) struct Fields<'a> {
    object: Json<'a>,
    asked: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// Starts reading the object at `path`.
    pub(crate) fn new(value: Json<'a>, path: &str) -> Result<Self, Wrong> {
        if matches!(value, Json::Object(_)) { Ok(Self { object: value, asked: Vec::new() }) } else { Err(Wrong::new(path, "no object")) }
    }

    /// Returns the field `key`; null if it is absent.
    pub(crate) fn value(&mut self, key: &'static str) -> Json<'a> {
        self.asked.push(key);
        self.object.get(key).unwrap_or(Json::Null)
    }

    /// Reads the field `key` as a `T`; an absent field counts as null.
    pub(crate) fn take<T: Deserialize<'a>>(&mut self, key: &'static str) -> Result<T, Wrong> {
        let value = self.value(key);
        if value.len() > MAX_VALUE_BYTES { Err(Wrong::new(key, "more than 512 KiB")) } else { typed(value, key) }
    }

    /// Refuses a field that is absent.
    pub(crate) fn need(&self, keys: &[&str]) -> Result<(), Wrong> {
        match keys.iter().find(|key| self.object.get(key).is_none()) {
            Some(absent) => Err(Wrong::new(absent, "the field is absent")),
            None => Ok(()),
        }
    }

    /// Refuses a field that was never requested.
    pub(crate) fn end(self) -> Result<(), Wrong> {
        match self.object.object().into_iter().flatten().find(|(key, _)| !self.asked.contains(&key.as_ref())) {
            Some((key, _)) => Err(Wrong::new(&key, "an unknown field")),
            None => Ok(()),
        }
    }
}
