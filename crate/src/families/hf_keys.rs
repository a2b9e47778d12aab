//! Reads the keys of a `config.json`.

use std::fmt;

use serde_json::{Map, Value};

use super::refusal::unsupported;
use crate::error::{Refusal, Result, word};

/// Keys that are absent, with the values that are used for them.
pub(super) type Taken = Vec<(&'static str, PublishedValue)>;

/// Value of a key in the publication of a family.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum PublishedValue {
    /// A length, which a new model must state.
    Length(usize),
    /// A constant of the arithmetic.
    Constant(f64),
}

impl fmt::Display for PublishedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(length) => write!(f, "{length}"),
            Self::Constant(value) => write!(f, "{value}"),
        }
    }
}

/// Facts about the sliding window of a family that its configurations do not state (transformers).
pub(super) struct Window {
    /// Its length in a configuration without the key.
    pub absent: Option<usize>,
    /// Key that switches it on; without one it is.
    pub switch: Option<&'static str>,
}

impl Window {
    /// A window that only its key gives.
    pub const STATED: Self = Self {
        absent: None,
        switch: None,
    };
}

pub(super) struct Keys<'a>(pub(super) &'a Map<String, Value>);

pub(super) fn missing(key: &str) -> crate::error::Error {
    Refusal::new(word!("bundle.config.key-missing"))
        .of("config.json")
        .subject(key)
        .into()
}

pub(super) fn wrong(key: &str, expected: &str, found: &Value) -> crate::error::Error {
    Refusal::new(word!("model.config.type"))
        .of("config.json")
        .subject(key)
        .expected(expected)
        .found(found)
        .into()
}

impl<'a> Keys<'a> {
    /// The value of a key that is present and not null.
    pub fn get(&self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    /// The value of a key that may be absent, as `of` reads it.
    fn read<T>(
        &self,
        key: &str,
        expected: &str,
        of: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        self.get(key)
            .map(|value| of(value).ok_or_else(|| wrong(key, expected, value)))
            .transpose()
    }

    pub fn text(&self, key: &str) -> Result<Option<&'a str>> {
        self.read(key, "text", Value::as_str)
    }

    pub fn bool(&self, key: &str, default: bool) -> Result<bool> {
        let given = self.read(key, "true or false", Value::as_bool)?;
        Ok(given.unwrap_or(default))
    }

    pub fn number(&self, key: &str) -> Result<Option<f64>> {
        self.read(key, "a number", Value::as_f64)
    }

    pub fn count(&self, key: &str) -> Result<Option<usize>> {
        self.read(key, "a count", |value| {
            usize::try_from(value.as_u64()?).ok()
        })
    }

    pub fn need(&self, key: &str) -> Result<usize> {
        self.count(key)?.ok_or_else(|| missing(key))
    }

    /// The context, or that of the family's publication (transformers, `configuration_<family>.py`).
    pub fn context(&self, key: &'static str, published: usize, taken: &mut Taken) -> Result<usize> {
        Ok(self.count(key)?.unwrap_or_else(|| {
            taken.push((key, PublishedValue::Length(published)));
            published
        }))
    }

    /// A constant of the arithmetic, or that of the family's publication.
    pub fn constant(&self, key: &'static str, published: f64, taken: &mut Taken) -> Result<f64> {
        Ok(self.number(key)?.unwrap_or_else(|| {
            taken.push((key, PublishedValue::Constant(published)));
            published
        }))
    }

    /// The length of the sliding window, if there is one and it is switched on.
    pub fn window(&self, window: &Window) -> Result<Option<usize>> {
        let given = match self.0.get("sliding_window") {
            None => window.absent,
            Some(_) => self.count("sliding_window")?,
        };
        let used = match window.switch {
            Some(switch) => self.bool(switch, false)?,
            None => true,
        };
        Ok(given.filter(|_| used))
    }

    /// Refuses a sliding window that is shorter than the context.
    pub fn refuse_window(&self, window: Option<usize>, context: usize) -> Result<()> {
        match window {
            Some(given) if given < context => Err(unsupported(
                "sliding_window",
                given,
                "null, or not less than the context",
            )),
            _ => Ok(()),
        }
    }

    /// The layers with a window by `layer_types`, if it is there.
    pub fn window_layers(&self, layers: usize) -> Result<Option<Vec<usize>>> {
        const KEY: &str = "layer_types";
        let Some(list) = self.get(KEY) else {
            return Ok(None);
        };
        let expected = || format!("a list of {layers} words, full_attention or sliding_attention");
        let words = list.as_array().filter(|words| words.len() == layers);
        let words = words.ok_or_else(|| wrong(KEY, &expected(), list))?;
        let mut found = Vec::new();
        for (index, word) in words.iter().enumerate() {
            match word.as_str() {
                Some("sliding_attention") => found.push(index),
                Some("full_attention") => {}
                Some(other) => {
                    return Err(unsupported(KEY, other, "full_attention, sliding_attention"));
                }
                None => return Err(wrong(KEY, &expected(), list)),
            }
        }
        Ok(Some(found))
    }

    /// The same keys, with these values where a key is absent or null.
    pub fn filled(&self, defaults: &[(&str, Value)]) -> Map<String, Value> {
        let mut filled = self.0.clone();
        for (key, value) in defaults {
            if self.get(key).is_none() {
                filled.insert((*key).to_owned(), value.clone());
            }
        }
        filled
    }
}

/// The stated head dimension, by default `hidden_size / heads`.
pub(super) fn head_dim(stated: Option<usize>, hidden_size: usize, heads: usize) -> Result<usize> {
    match stated {
        Some(dim) => Ok(dim),
        None if heads > 0 && hidden_size.is_multiple_of(heads) => Ok(hidden_size / heads),
        None => {
            let refusal = Refusal::new(word!("model.config.heads"))
                .of("config.json")
                .subject("num_attention_heads");
            Err(refusal
                .expected(format!("a divisor of hidden_size {hidden_size}"))
                .found(heads)
                .into())
        }
    }
}
