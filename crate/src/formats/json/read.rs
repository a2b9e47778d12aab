//! Deserializes values with serde, more strictly than serde by itself: a list is never accepted for an object, nor an object for a word.

use std::borrow::Cow;

use serde::de::value::{Error, MapDeserializer, StrDeserializer};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, SeqAccess,
    Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;

use super::scan::unescaped;
use super::value::Json;

/// Reads the value as a `T`.
pub(crate) fn read<'a, T: Deserialize<'a>>(value: Json<'a>) -> Result<T, Error> {
    T::deserialize(value)
}

/// Passes on an integer as an integer where 64 bits hold it, and every other number as the nearest f64.
fn number<'de, V: Visitor<'de>>(digits: &str, visitor: V) -> Result<V::Value, Error> {
    match (
        digits.parse::<u64>(),
        digits.parse::<i64>(),
        digits.parse::<f64>(),
    ) {
        (Ok(count), _, _) => visitor.visit_u64(count),
        (_, Ok(number), _) if number != 0 => visitor.visit_i64(number),
        (_, _, Ok(number)) if number.is_finite() => visitor.visit_f64(number),
        _ => Err(Error::custom("number out of range")),
    }
}

impl<'de> Deserializer<'de> for Json<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Json::Null => visitor.visit_unit(),
            Json::Bool(flag) => visitor.visit_bool(flag),
            Json::Number(digits) => number(digits, visitor),
            Json::Text(text) => match unescaped(text) {
                Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
                Cow::Owned(text) => visitor.visit_string(text),
            },
            Json::List(_) => {
                let items = self.items();
                let left = items.clone().count();
                visitor.visit_seq(Items { items, left })
            }
            Json::Object(_) => visitor.visit_map(MapDeserializer::new(self.entries())),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self == Json::Null {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if matches!(self, Json::List(_)) {
            Err(Error::invalid_type(Unexpected::Seq, &visitor))
        } else {
            self.deserialize_any(visitor)
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let word = self
            .text()
            .ok_or_else(|| Error::custom("expected a word"))?;
        let word: StrDeserializer<'_, Error> = (&*word).into_deserializer();
        visitor.visit_enum(word)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map
        identifier ignored_any
    }
}

struct Items<I> {
    items: I,
    left: usize,
}

impl<'de, I: Iterator<Item = Json<'de>>> SeqAccess<'de> for Items<I> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        self.left = self.left.saturating_sub(1);
        self.items
            .next()
            .map(|item| seed.deserialize(item))
            .transpose()
    }

    /// Gives the exact length, so that a list allocates no more than its items need.
    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> IntoDeserializer<'de, Error> for Json<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}
