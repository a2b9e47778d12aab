//! Refuses merges of a `tokenizer.json` on which the library would panic.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::flaws::refused;
use super::{TOKENIZER_FILE, unread};
use crate::error::Result;

/// The facts of a model on which its merges depend: the library writes each merged token into a place as long as the longest token.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Model {
    continuing_subword_prefix: Option<String>,
    vocab: Vocabulary,
    merges: Merges,
}

impl Model {
    /// Refuses merges on which the library would panic. `document` is read again if there is a prefix.
    ///
    /// # Errors
    /// `tokenizer.invalid`.
    pub fn check(&self, document: &[u8]) -> Result<()> {
        const PART: &str = "model merges";
        let prefix = self
            .continuing_subword_prefix
            .as_deref()
            .unwrap_or_default();
        if !prefix.is_empty() {
            let with: WithMerges = serde_json::from_slice(document)
                .map_err(|error| unread(TOKENIZER_FILE, document, error))?;
            let mut pairs = with.model.merges.iter().filter_map(Merge::parts);
            let short = pairs.find(|(_, right)| right.get(prefix.len()..).is_none());
            if let Some((left, right)) = short {
                let expected =
                    format!("second parts that begin with continuing_subword_prefix {prefix:?}");
                return Err(refused(PART, &expected, format!("{left} {right}")));
            }
        }
        if self.merges.length > self.vocab.longest + prefix.len() {
            let expected = "merges that make a token of the vocabulary";
            return Err(refused(PART, expected, &self.merges.text));
        }
        Ok(())
    }
}

/// The longest token of a vocabulary, in bytes.
#[derive(Debug, Default)]
struct Vocabulary {
    longest: usize,
}

impl<'de> Deserialize<'de> for Vocabulary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self::default())
    }
}

impl<'de> Visitor<'de> for Vocabulary {
    type Value = Self;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a vocabulary")
    }

    fn visit_map<M: MapAccess<'de>>(mut self, mut map: M) -> Result<Self, M::Error> {
        while let Some(token) = map.next_key::<String>()? {
            self.longest = self.longest.max(token.len());
            map.next_value::<IgnoredAny>()?;
        }
        Ok(self)
    }

    /// A list of pieces with scores has no merges.
    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Self, S::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(self)
    }
}

/// The longest of the merges: the bytes of both parts, and its text.
#[derive(Debug, Default)]
struct Merges {
    length: usize,
    text: String,
}

impl<'de> Deserialize<'de> for Merges {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self::default())
    }
}

impl<'de> Visitor<'de> for Merges {
    type Value = Self;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a list of merges")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<S: SeqAccess<'de>>(mut self, mut list: S) -> Result<Self, S::Error> {
        while let Some(merge) = list.next_element::<Merge>()? {
            let Some((left, right)) = merge.parts() else {
                continue;
            };
            let length = left.len() + right.len();
            if length > self.length {
                let text = format!("{left} {right}");
                self = Self { length, text };
            }
        }
        Ok(self)
    }
}

/// A document of which only the merges are read.
#[derive(Deserialize)]
struct WithMerges {
    model: MergesOnly,
}

#[derive(Deserialize)]
struct MergesOnly {
    #[serde(default)]
    merges: Vec<Merge>,
}

/// A merge: `left right`, or a list of two.
#[derive(Deserialize)]
#[serde(untagged)]
enum Merge {
    Joined(String),
    Apart(String, String),
    /// Anything else, which the library refuses.
    Other(IgnoredAny),
}

impl Merge {
    fn parts(&self) -> Option<(&str, &str)> {
        match self {
            // A line of merges.txt that the library leaves out.
            Self::Joined(text) if text.starts_with("#version") => None,
            Self::Joined(text) => text.split_once(' '),
            Self::Apart(left, right) => Some((left, right)),
            Self::Other(IgnoredAny) => None,
        }
    }
}
