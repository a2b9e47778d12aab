//! Reads the keys of a `config.json`.

use std::fmt;

use serde_json::{Map, Value, json};

use super::refusal::unsupported;
use crate::config::RopeScaling;
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

    /// Refuses a sliding window that is switched on and shorter than the context.
    pub fn refuse_sliding_window(&self, window: &Window, context: usize) -> Result<()> {
        let given = match self.0.get("sliding_window") {
            None => window.absent,
            Some(_) => self.count("sliding_window")?,
        };
        let used = match window.switch {
            Some(switch) => self.bool(switch, false)?,
            None => true,
        };
        match given {
            Some(given) if used && given < context => Err(unsupported(
                "sliding_window",
                given,
                "null, or not less than the context",
            )),
            _ => Ok(()),
        }
    }

    /// Returns base and scaling of the rotary positions, which may be stated twice, under keys of older and newer files, if both are equal.
    /// The base is `published` where none is stated.
    pub fn rope(&self, published: f64, taken: &mut Taken) -> Result<(f64, RopeScaling)> {
        let (newer, older) = (
            self.rope_at("rope_parameters")?,
            self.rope_at("rope_scaling")?,
        );
        if let (Some((_, of_newer)), Some((_, of_older))) = (newer, older)
            && of_newer != of_older
        {
            return Err(unsupported(
                "rope_scaling",
                json!(of_older),
                &format!("absent, or {} as in rope_parameters", json!(of_newer)),
            ));
        }
        // transformers 5 takes the value inside, too.
        let inside = [newer, older]
            .into_iter()
            .flatten()
            .find_map(|(theta, _)| theta);
        let theta = match inside.or(self.number("rope_theta")?) {
            Some(theta) => theta,
            None => self.constant("rope_theta", published, taken)?,
        };
        Ok((
            theta,
            newer
                .or(older)
                .map_or(RopeScaling::Default, |(_, scaling)| scaling),
        ))
    }

    /// Returns base and scaling of the rotary positions as the object at a key states them.
    fn rope_at(&self, key: &str) -> Result<Option<(Option<f64>, RopeScaling)>> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let inner = Keys(of_all_layers(
            key,
            value
                .as_object()
                .ok_or_else(|| wrong(key, "an object", value))?,
        )?);
        if let Some(factor) = inner
            .number("partial_rotary_factor")?
            .filter(|factor| *factor != 1.0)
        {
            return Err(unsupported("partial_rotary_factor", factor, "1"));
        }
        let word = match (inner.text("rope_type")?, inner.text("type")?) {
            (Some(word), Some(other)) if word != other => {
                return Err(unsupported(
                    &format!("{key}.type"),
                    other,
                    &format!("absent, or {word} as in rope_type"),
                ));
            }
            (Some(word), _) | (None, Some(word)) => word,
            (None, None) if inner.get("factor").is_some() => {
                return Err(missing(&format!("{key}.rope_type")));
            }
            (None, None) => "default",
        };
        let need = |name: &str| {
            inner
                .number(name)?
                .ok_or_else(|| missing(&format!("{key}.{name}")))
        };
        let scaling = match word {
            "default" => RopeScaling::Default,
            "linear" => RopeScaling::Linear {
                factor: need("factor")?,
            },
            "llama3" => RopeScaling::Llama3 {
                factor: need("factor")?,
                low_freq_factor: need("low_freq_factor")?,
                high_freq_factor: need("high_freq_factor")?,
                original_max_position_embeddings: inner.need("original_max_position_embeddings")?,
            },
            _ => {
                return Err(unsupported(
                    &format!("{key}.rope_type"),
                    word,
                    "default, linear, llama3",
                ));
            }
        };
        Ok(Some((inner.number("rope_theta")?, scaling)))
    }
}

/// The values of the rotary positions, which may be nested by the type of the layers. All layers have full attention here, so that
/// types with other values are refused.
fn of_all_layers<'a>(key: &str, fields: &'a Map<String, Value>) -> Result<&'a Map<String, Value>> {
    let mut nested = fields
        .iter()
        .filter_map(|(kind, value)| Some((kind, value.as_object()?)));
    let Some((kind, first)) = nested.next() else {
        return Ok(fields);
    };
    // A value outside the types would hold for none of them.
    let other = fields
        .iter()
        .find(|(_, value)| value.as_object() != Some(first));
    match other {
        Some((other, value)) => Err(unsupported(
            &format!("{key}.{other}"),
            value,
            &format!("the values of {key}.{kind}: one set for all layers"),
        )),
        None => Ok(first),
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
