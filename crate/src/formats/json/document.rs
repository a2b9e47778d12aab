//! Documents of this project: each key occurs once in its object, nesting is bounded, and every value is read with its path. The caller gives
//! [`DocumentError`] the code of its kind of document.

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
pub(crate) struct DocumentError {
    /// Path of the value, its keys separated by `/`; empty for the document.
    pub(crate) path: String,
    /// Description of the fault.
    pub(crate) found: String,
}

impl DocumentError {
    pub(crate) fn new(path: &str, found: impl Display) -> Self {
        Self {
            path: path.to_string(),
            found: found.to_string(),
        }
    }
}

/// Reports the value at `path` if it is `wrong`.
pub(crate) fn wrong_if(wrong: bool, path: &str, found: impl Display) -> Result<(), DocumentError> {
    if wrong {
        Err(DocumentError::new(path, found))
    } else {
        Ok(())
    }
}

/// Parses `text` as a document.
pub(crate) fn document(text: &str) -> Result<Json<'_>, DocumentError> {
    parse(text, MAX_DEPTH).map_err(|fault| match fault {
        JsonFault::Syntax { at } => DocumentError::new("", format!("no JSON at byte {at}")),
        JsonFault::Depth { .. } => DocumentError::new("", format!("more than {MAX_DEPTH} levels")),
        JsonFault::Duplicate { path, .. } => DocumentError::new(&path, "a duplicate key"),
    })
}

/// Reads the value at `path` as a `T`.
pub(crate) fn typed<'a, T: Deserialize<'a>>(
    value: Json<'a>,
    path: &str,
) -> Result<T, DocumentError> {
    read(value).map_err(|error| DocumentError::new(path, error))
}

/// The fields of an object.
pub(crate) struct Fields<'a> {
    object: Json<'a>,
    asked: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// Starts reading a document, which must be an object.
    pub(crate) fn new(object: Json<'a>) -> Result<Self, DocumentError> {
        wrong_if(!matches!(object, Json::Object(_)), "", "no object")?;
        let asked = Vec::new();
        Ok(Self { object, asked })
    }

    /// Value of the field `key`; null if it is absent.
    pub(crate) fn value(&mut self, key: &'static str) -> Json<'a> {
        self.asked.push(key);
        self.object.get(key).unwrap_or(Json::Null)
    }

    /// Reads the field `key` as a `T`; an absent field counts as null.
    pub(crate) fn take<T: Deserialize<'a>>(
        &mut self,
        key: &'static str,
    ) -> Result<T, DocumentError> {
        let value = self.value(key);
        wrong_if(value.len() > MAX_VALUE_BYTES, key, "more than 512 KiB")?;
        typed(value, key)
    }

    /// Refuses a field that is absent.
    pub(crate) fn need(&self, keys: &[&str]) -> Result<(), DocumentError> {
        match keys.iter().find(|key| self.object.get(key).is_none()) {
            Some(absent) => Err(DocumentError::new(absent, "the field is absent")),
            None => Ok(()),
        }
    }

    /// Refuses a field that was never requested.
    pub(crate) fn end(self) -> Result<(), DocumentError> {
        let mut keys = self.object.entries().map(|(key, _)| key);
        match keys.find(|key| !self.asked.contains(&key.as_ref())) {
            Some(key) => Err(DocumentError::new(&key, "an unknown field")),
            None => Ok(()),
        }
    }
}

/// Path of a key that is there twice in a JSON document: of its values, one would be lost.
pub fn key_twice(document: &[u8]) -> Option<String> {
    match parse(std::str::from_utf8(document).ok()?, MAX_DEPTH) {
        Err(JsonFault::Duplicate { path, .. }) => Some(path.replace('/', ".")),
        _ => None,
    }
}
