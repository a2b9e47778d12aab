//! Values of an adapter's settings that have more than one form in JSON.

use std::fmt;
use std::marker::PhantomData;

use super::declare::words;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

/// Names of modules: a list, or one text ([example](crate::config)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Names {
    /// One text, whose meaning depends on the setting.
    One(String),
    /// Names of modules, or their ends after a dot.
    Many(Vec<String>),
}

impl Names {
    /// A list of these names.
    pub fn many(names: &[&str]) -> Self {
        Self::Many(names.iter().map(|name| (*name).to_string()).collect())
    }

    /// Returns all texts as a slice.
    #[doc(hidden)]
    pub fn texts(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(list) => list,
        }
    }

    /// Returns true for an empty list, or if every text is empty.
    #[doc(hidden)]
    pub fn is_empty(&self) -> bool {
        self.texts().iter().all(String::is_empty)
    }
}

struct NamesVisitor;

impl<'de> Visitor<'de> for NamesVisitor {
    type Value = Names;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of names, or one text")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Names, E> {
        Ok(Names::One(text.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Names, A::Error> {
        items(list).map(Names::Many)
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(NamesVisitor)
    }
}

/// Numbers of blocks: one number, or a list.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Layers {
    /// One block.
    One(u64),
    /// These blocks; an empty list means all.
    Many(Vec<u64>),
}

#[doc(hidden)]
impl Layers {
    /// The numbers as a slice.
    pub fn numbers(&self) -> &[u64] {
        match self {
            Self::One(number) => std::slice::from_ref(number),
            Self::Many(list) => list,
        }
    }
}

struct LayersVisitor;

impl<'de> Visitor<'de> for LayersVisitor {
    type Value = Layers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer ≥ 0, or a list of them")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Layers, E> {
        Ok(Layers::One(number))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Layers, A::Error> {
        items(list).map(Layers::Many)
    }
}

impl<'de> Deserialize<'de> for Layers {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(LayersVisitor)
    }
}

fn items<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(list: A) -> Result<Vec<T>, A::Error> {
    Vec::deserialize(SeqAccessDeserializer::new(list))
}

/// Values by patterns of names, in the order of the document; the first key that matches counts.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq)]
pub struct Table<T>(pub Vec<(String, T)>);

impl<T> Table<T> {
    /// The patterns, in their order.
    pub(super) fn texts(&self) -> Vec<&str> {
        self.0.iter().map(|(text, _)| text.as_str()).collect()
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Serialize> Serialize for Table<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

struct TableVisitor<T>(PhantomData<T>);

impl<'de, T: DeserializeOwned> Visitor<'de> for TableVisitor<T> {
    type Value = Table<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a number for each name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Table<T>, A::Error> {
        let mut all: Vec<(String, T)> = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, T>()? {
            if all.iter().any(|(known, _)| *known == key) {
                return Err(de::Error::custom(format!(
                    "key {key} twice, expected each key once"
                )));
            }
            all.push((key, value));
        }
        Ok(Table(all))
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Table<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(TableVisitor(PhantomData))
    }
}

/// Initial values of A; B starts at 0.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Init {
    /// Uniform in ±1/√in; `true` in JSON.
    #[default]
    Uniform,
    /// Normal with standard deviation 1/r; `"gaussian"` in JSON.
    Gaussian,
}

impl Serialize for Init {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Uniform => to.serialize_bool(true),
            Self::Gaussian => to.serialize_str("gaussian"),
        }
    }
}

struct InitVisitor;

impl Visitor<'_> for InitVisitor {
    type Value = Init;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true or \"gaussian\"")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Init, E> {
        if value {
            Ok(Init::Uniform)
        } else {
            Err(E::custom(
                "false, expected true or \"gaussian\": with B = 0 a run begins as the base",
            ))
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Init, E> {
        match text {
            "gaussian" => Ok(Init::Gaussian),
            _ if changes_base(text) => Err(E::custom(format!(
                "{text}, expected true or \"gaussian\": {text} changes the base"
            ))),
            "eva" | "orthogonal" => Err(E::custom(format!(
                "{text}, expected true or \"gaussian\": {text} is not supported"
            ))),
            _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
        }
    }
}

impl<'de> Deserialize<'de> for Init {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(InitVisitor)
    }
}

/// Returns true for PEFT's names of initialisations that change the base, so that the factors fit no other base.
pub(crate) fn changes_base(init: &str) -> bool {
    matches!(init, "pissa" | "olora" | "corda" | "loftq" | "lora_ga")
        || init.starts_with("pissa_niter_")
}

words! {
    /// Biases of the base that are trained.
    #[doc(hidden)]
    pub enum Bias {
        /// No biases.
        #[default]
        None,
    }
}
