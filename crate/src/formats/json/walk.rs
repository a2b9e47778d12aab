//! Finds values in the text of a scanned document.

use std::borrow::Cow;
use std::iter::from_fn;

use super::scan::{Scan, unescaped};
use super::value::Json;

impl<'a> Json<'a> {
    pub(crate) fn text(self) -> Option<Cow<'a, str>> {
        if let Json::Text(text) = self {
            Some(unescaped(text))
        } else {
            None
        }
    }

    /// Items of a list; `None` for another value.
    pub(crate) fn list(self) -> Option<impl Iterator<Item = Json<'a>> + Clone> {
        let Json::List(text) = self else {
            return None;
        };
        let mut walk = Scan::inside(text);
        Some(from_fn(move || {
            next(&mut walk)?;
            walk.value(0).ok()
        }))
    }

    /// Iterates over the items of a list; over nothing for another value.
    pub(crate) fn items(self) -> impl Iterator<Item = Json<'a>> + Clone {
        self.list().into_iter().flatten()
    }

    /// Keys and values of an object; `None` for another value.
    pub(crate) fn object(self) -> Option<impl Iterator<Item = (Cow<'a, str>, Json<'a>)> + Clone> {
        let Json::Object(text) = self else {
            return None;
        };
        let mut walk = Scan::inside(text);
        Some(from_fn(move || {
            next(&mut walk)?;
            let key = walk.string().ok()?;
            walk.colon().ok()?;
            Some((unescaped(key), walk.value(0).ok()?))
        }))
    }

    /// Iterates over the keys and values of an object; over nothing for another value.
    pub(crate) fn entries(self) -> impl Iterator<Item = (Cow<'a, str>, Json<'a>)> + Clone {
        self.object().into_iter().flatten()
    }

    /// Value of `key` in an object that has it.
    pub(crate) fn get(self, key: &str) -> Option<Json<'a>> {
        let mut entries = self.entries();
        entries
            .find(|(name, _)| name == key)
            .map(|(_, value)| value)
    }

    /// Values of `keys`, found in one walk.
    pub(crate) fn fields<const N: usize>(self, keys: [&str; N]) -> [Option<Json<'a>>; N] {
        let mut found = [None; N];
        for (name, value) in self.entries() {
            if let Some(at) = keys.iter().position(|key| *key == name) {
                found[at] = Some(value);
            }
        }
        found
    }

    /// Length of the value's text, without the quotes of a text.
    pub(crate) fn len(self) -> usize {
        match self {
            Json::Number(text) | Json::Text(text) | Json::List(text) | Json::Object(text) => {
                text.len()
            }
            Json::Null | Json::Bool(_) => 0,
        }
    }

    /// Counts the values inside it, in lists and objects of any depth.
    pub(crate) fn values(self) -> usize {
        let items = self.items().chain(self.entries().map(|(_, value)| value));
        items.map(|item| 1 + item.values()).sum()
    }

    /// Value of a count written `0|[1-9][0-9]*` that fits 64 bits.
    pub(crate) fn count(self) -> Option<u64> {
        match self {
            Json::Number(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
                digits.parse().ok()
            }
            _ => None,
        }
    }
}

/// Moves to the next item of a container, if there is one.
fn next(walk: &mut Scan<'_>) -> Option<()> {
    walk.space();
    if walk.take(b',') {
        walk.space();
    }
    walk.peek().map(|_| ())
}
