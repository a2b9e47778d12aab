//! Finds values in the text of a scanned document.

use std::borrow::Cow;

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

    /// Returns the items of a list.
    pub(crate) fn list(self) -> Option<impl Iterator<Item = Json<'a>> + Clone> {
        if let Json::List(text) = self {
            Some(Items(Scan::inside(text)))
        } else {
            None
        }
    }

    /// Returns the keys and values of an object.
    pub(crate) fn object(self) -> Option<impl Iterator<Item = (Cow<'a, str>, Json<'a>)> + Clone> {
        if let Json::Object(text) = self {
            Some(Entries(Scan::inside(text)))
        } else {
            None
        }
    }

    /// Returns the value of `key` in an object that has it.
    pub(crate) fn get(self, key: &str) -> Option<Json<'a>> {
        self.object()?
            .find(|(name, _)| name == key)
            .map(|(_, value)| value)
    }

    /// Returns the values of `keys`, found in one walk.
    pub(crate) fn fields<const N: usize>(self, keys: [&str; N]) -> [Option<Json<'a>>; N] {
        let mut found = [None; N];
        for (name, value) in self.object().into_iter().flatten() {
            if let Some(at) = keys.iter().position(|key| *key == name) {
                found[at] = Some(value);
            }
        }
        found
    }

    /// Returns the length of the value's text, without the quotes of a text.
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
        let items = self
            .list()
            .into_iter()
            .flatten()
            .chain(self.object().into_iter().flatten().map(|(_, value)| value));
        items.map(|item| 1 + item.values()).sum()
    }

    /// Returns the value of a count written `0|[1-9][0-9]*` that fits 64 bits.
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

/// Iterator over the items of a list.
#[derive(Clone)]
struct Items<'a>(Scan<'a>);

impl<'a> Iterator for Items<'a> {
    type Item = Json<'a>;

    fn next(&mut self) -> Option<Json<'a>> {
        next(&mut self.0)?;
        self.0.value(0).ok()
    }
}

/// Iterator over the keys and values of an object.
#[derive(Clone)]
struct Entries<'a>(Scan<'a>);

impl<'a> Iterator for Entries<'a> {
    type Item = (Cow<'a, str>, Json<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        next(&mut self.0)?;
        let key = self.0.string().ok()?;
        self.0.colon().ok()?;
        Some((unescaped(key), self.0.value(0).ok()?))
    }
}
