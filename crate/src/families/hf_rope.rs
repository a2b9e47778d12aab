//! Reads the keys of rotary positions in a `config.json`, of older and newer files.

use serde_json::{Map, Value, json};

use super::hf_keys::{Keys, Taken, missing, wrong};
use super::refusal::unsupported;
use crate::config::RopeScaling;
use crate::error::Result;

/// Word of the layers that see all keys, under which newer files nest the values of these layers.
const FULL: &str = "full_attention";

/// Word of the layers with a window.
const WINDOWED: &str = "sliding_attention";

/// Facts about the rotary positions of a family that its configurations do not state.
pub(super) struct PublishedRope {
    /// Base of the frequencies where none is stated.
    pub theta: f64,
    /// Words of the stretchings that the family has.
    pub words: &'static [&'static str],
    /// True if layers with a window may have other values.
    pub by_kind: bool,
    /// Share of the dimensions that are rotated where none is stated, if it may be less than all.
    pub partial: Option<f64>,
    /// True if queries may grow with their position; transformers ignores the key elsewhere.
    pub growing: bool,
}

impl PublishedRope {
    /// Base of most publications.
    pub const THETA: f64 = 10_000.0;

    /// Rotary positions without stretching.
    const PLAIN: Self = Self {
        words: &["default"],
        ..Self::USUAL
    };

    /// The rotary positions of most families.
    pub const USUAL: Self = Self {
        theta: Self::THETA,
        words: &["default", "linear", "llama3", "yarn"],
        by_kind: false,
        partial: None,
        growing: false,
    };
}

/// The rotary positions of a configuration.
pub(super) struct StatedRope {
    /// Base of the frequencies.
    pub theta: f64,
    /// Stretching of the frequencies.
    pub scaling: RopeScaling,
    /// Base in layers with a window, where it is stated apart.
    pub local_theta: Option<f64>,
    /// Share of the dimensions that are rotated, if it is stated.
    pub partial: Option<f64>,
}

/// The values of one object with rotary positions.
#[derive(Clone, PartialEq)]
struct Values {
    theta: Option<f64>,
    scaling: RopeScaling,
    partial: Option<f64>,
}

impl Keys<'_> {
    /// Returns the rotary positions, which may be stated twice, under keys of older and newer files, if both are equal.
    pub fn rope(&self, published: &PublishedRope, taken: &mut Taken) -> Result<StatedRope> {
        let at = |key| self.rope_at(key, published);
        let (newer, older) = (at("rope_parameters")?, at("rope_scaling")?);
        if let (Some(newer), Some(older)) = (&newer, &older)
            && newer.scaling != older.scaling
        {
            return Err(unsupported(
                "rope_scaling",
                json!(older.scaling),
                &format!("absent, or {} as in rope_parameters", json!(newer.scaling)),
            ));
        }
        // transformers 5 takes the value inside, too.
        let inside =
            |of: fn(&Values) -> Option<f64>| [&newer, &older].into_iter().flatten().find_map(of);
        let theta = match inside(|values| values.theta).or(self.number("rope_theta")?) {
            Some(theta) => theta,
            None => self.constant("rope_theta", published.theta, taken)?,
        };
        let stated = inside(|values| values.partial).or(self.number("partial_rotary_factor")?);
        let partial = match published.partial {
            Some(absent) => Some(stated.unwrap_or(absent)),
            None => stated,
        };
        if let Some(other) = partial.filter(|share| published.partial.is_none() && *share != 1.0) {
            return Err(unsupported("partial_rotary_factor", other, "1"));
        }
        let local = match self
            .get("rope_parameters")
            .and_then(|value| value.get(WINDOWED))
        {
            Some(Value::Object(own)) if published.by_kind => {
                values_in("rope_parameters", &Keys(own), &PublishedRope::PLAIN)?.theta
            }
            _ => None,
        };
        Ok(StatedRope {
            theta,
            scaling: newer
                .or(older)
                .map_or(RopeScaling::Default, |values| values.scaling),
            local_theta: local,
            partial: partial.filter(|share| *share != 1.0),
        })
    }

    /// Returns the rotary positions that the object at a key states for layers that see all keys.
    fn rope_at(&self, key: &str, published: &PublishedRope) -> Result<Option<Values>> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let fields = value
            .as_object()
            .ok_or_else(|| wrong(key, "an object", value))?;
        let fields = match fields.get(FULL).and_then(Value::as_object) {
            Some(own) if published.by_kind => own,
            _ => of_all_layers(key, fields)?,
        };
        values_in(key, &Keys(fields), published).map(Some)
    }
}

/// Reads the values of an object.
fn values_in(key: &str, inner: &Keys<'_>, published: &PublishedRope) -> Result<Values> {
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
    if !published.words.contains(&word) {
        let expected = published.words.join(", ");
        return Err(unsupported(&format!("{key}.rope_type"), word, &expected));
    }
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
        "yarn" => RopeScaling::Yarn {
            factor: need("factor")?,
            // The context of the model, where it is absent.
            original_max_position_embeddings: inner
                .count("original_max_position_embeddings")?
                .unwrap_or(0),
            beta_fast: inner.number("beta_fast")?.unwrap_or(32.0),
            beta_slow: inner.number("beta_slow")?.unwrap_or(1.0),
            truncate: inner.bool("truncate", true)?,
            attention_factor: inner.number("attention_factor")?,
            mscale: inner.number("mscale")?,
            mscale_all_dim: inner.number("mscale_all_dim")?,
            llama_4_scaling_beta: match published.growing {
                true => inner.number("llama_4_scaling_beta")?,
                false => None,
            },
        },
        "dynamic" => match inner.number("alpha")? {
            Some(alpha) => RopeScaling::Dynamic { alpha },
            None => {
                let key = format!("{key}.alpha");
                return Err(unsupported(
                    &key,
                    "absent",
                    "a number, by which the base grows",
                ));
            }
        },
        // The words of LongRoPE, of which the family says which it has.
        _ => RopeScaling::LongRope {
            short_factor: factors(inner, key, "short_factor")?,
            long_factor: factors(inner, key, "long_factor")?,
            original_max_position_embeddings: inner
                .count("original_max_position_embeddings")?
                .unwrap_or(0),
            attention_factor: inner.number("attention_factor")?,
            factor: inner.number("factor")?,
        },
    };
    Ok(Values {
        theta: inner.number("rope_theta")?,
        scaling,
        partial: inner.number("partial_rotary_factor")?,
    })
}

/// Reads a list of LongRoPE.
fn factors(inner: &Keys<'_>, key: &str, name: &str) -> Result<Vec<f64>> {
    let full = format!("{key}.{name}");
    let value = inner.get(name).ok_or_else(|| missing(&full))?;
    let refused = || wrong(&full, "a list of numbers", value);
    let list = value.as_array().ok_or_else(refused)?;
    list.iter()
        .map(|factor| factor.as_f64().ok_or_else(refused))
        .collect()
}

/// The values of all layers, where they are nested by the type of the layers, of which only one is known here.
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
