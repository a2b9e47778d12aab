//! Values of APOLLO's settings.

use std::fmt;

use super::declare::words;

use serde::de::{self, Deserializer, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

/// JSON value of [`ApolloScale::Auto`].
const AUTO: &str = "auto";

words! {
    /// Kind of random matrix with which APOLLO projects gradients.
    #[doc(hidden)]
    pub enum ProjectorKind {
        /// Independent, normally distributed entries.
        #[default]
        Normal,
        /// Orthonormal columns.
        Orthogonal,
    }
}

words! {
    /// Matrices that APOLLO projects; AdamW updates the rest.
    #[doc(hidden)]
    pub enum Projected {
        /// Matrices of attention and MLP.
        #[default]
        Blocks,
        /// These, and embeddings and head.
        All,
    }
}

/// Square of a factor of the update.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum ApolloScale {
    /// Length of a channel divided by the rank, which makes an update as long as AdamW's for every rank; `"auto"` in
    /// JSON.
    #[default]
    Auto,
    /// A fixed value.
    Square(f64),
}

impl Serialize for ApolloScale {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => to.serialize_str(AUTO),
            Self::Square(scale) => to.serialize_f64(*scale),
        }
    }
}

struct ScaleVisitor;

impl Visitor<'_> for ScaleVisitor {
    type Value = ApolloScale;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or \"auto\"")
    }

    fn visit_f64<E: de::Error>(self, scale: f64) -> Result<ApolloScale, E> {
        Ok(ApolloScale::Square(scale))
    }

    fn visit_u64<E: de::Error>(self, scale: u64) -> Result<ApolloScale, E> {
        Ok(ApolloScale::Square(scale as f64))
    }

    fn visit_i64<E: de::Error>(self, scale: i64) -> Result<ApolloScale, E> {
        Ok(ApolloScale::Square(scale as f64))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<ApolloScale, E> {
        if text == AUTO {
            Ok(ApolloScale::Auto)
        } else {
            Err(E::invalid_value(de::Unexpected::Str(text), &self))
        }
    }

    // Older checkpoints have null for a scale that was not given.
    fn visit_unit<E: de::Error>(self) -> Result<ApolloScale, E> {
        Ok(ApolloScale::Auto)
    }
}

impl<'de> Deserialize<'de> for ApolloScale {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ScaleVisitor)
    }
}
