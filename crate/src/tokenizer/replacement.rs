//! Reads a `tokenizer.json` with other parts than it has, in one pass and without a copy of it.

use std::fmt;

use serde::de::value::StringDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, Error, IgnoredAny, IntoDeserializer, MapAccess, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::Value;

use super::budget::Parts;

/// Reads a value of a document, with `parts` in place of its own.
pub(super) fn read<'de, T: Deserialize<'de>>(
    document: &'de [u8],
    parts: &'de Parts,
) -> serde_json::Result<T> {
    let mut reader = serde_json::Deserializer::from_slice(document);
    let inner = &mut reader;
    let value = T::deserialize(Replacement { inner, parts })?;
    reader.end()?;
    Ok(value)
}

/// A deserializer, visitor or map whose values of some keys are those of `parts`.
struct Replacement<'de, T> {
    inner: T,
    parts: &'de Parts,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Replacement<'de, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, parts) = (visitor, self.parts);
        self.inner.deserialize_map(Replacement { inner, parts })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq
        tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Replacement<'de, V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        self.inner.expecting(formatter)
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<V::Value, M::Error> {
        self.inner.visit_map(Fields {
            map,
            parts: self.parts,
            next: None,
        })
    }
}

struct Fields<'de, M> {
    map: M,
    parts: &'de Parts,
    /// Value of the key that was read last, if it is replaced.
    next: Option<&'de Value>,
}

impl<'de, M: MapAccess<'de>> MapAccess<'de> for Fields<'de, M> {
    type Error = M::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, M::Error> {
        let Some(key) = self.map.next_key::<String>()? else {
            return Ok(None);
        };
        self.next = match key.as_str() {
            "normalizer" => Some(&self.parts.normalizer),
            "pre_tokenizer" => Some(&self.parts.pre_tokenizer),
            "decoder" => Some(&self.parts.decoder),
            "post_processor" => Some(&self.parts.post_processor),
            _ => None,
        };
        let key: StringDeserializer<M::Error> = key.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, M::Error> {
        match self.next.take() {
            Some(value) => {
                self.map.next_value::<IgnoredAny>()?;
                seed.deserialize(value).map_err(Error::custom)
            }
            None => self.map.next_value_seed(seed),
        }
    }
}
