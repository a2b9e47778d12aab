//! Reads and writes a `tokenizer.json` with little memory.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use tokenizers::models::bpe::BPE;
use tokenizers::{
    AddedToken, DecoderWrapper, ModelWrapper, NormalizerWrapper, PostProcessorWrapper,
    PreTokenizerWrapper, TokenizerImpl,
};

use super::budget::Parts;
use super::{TOKENIZER_FILE, bad, replacement, unread};
use crate::error::Result;

/// A tokenizer with a model of type `M`.
type With<M> =
    TokenizerImpl<M, NormalizerWrapper, PreTokenizerWrapper, PostProcessorWrapper, DecoderWrapper>;

/// Reads the tokenizer of a document, with `parts` in place of its own. For byte pair encoding, as in nearly all large ones, no tree of
/// the whole model is built: for 150,000 tokens it would take a hundred megabytes. Other models, and faulty documents, are read in the
/// library's usual way.
pub(super) fn read(document: &[u8], parts: &Parts) -> Result<tokenizers::Tokenizer> {
    if let Ok(streamed) = replacement::read::<With<BPE>>(document, parts) {
        return Ok(streamed.into());
    }
    let read = replacement::read::<With<ModelWrapper>>(document, parts);
    read.map(Into::into)
        .map_err(|error| unread(TOKENIZER_FILE, document, error))
}

/// A document of byte pair encoding, written pair by pair. The order of its fields is that of the file.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    pub version: &'static str,
    pub truncation: (),
    pub padding: (),
    pub added_tokens: Vec<Value>,
    pub normalizer: Value,
    pub pre_tokenizer: Value,
    pub post_processor: Value,
    pub decoder: Value,
    pub model: Model<'a>,
}

impl<'a> Document<'a> {
    /// Creates the document of a model without any other part.
    pub fn new(model: Model<'a>) -> Self {
        Self {
            version: "1.0",
            truncation: (),
            padding: (),
            added_tokens: Vec::new(),
            normalizer: Value::Null,
            pre_tokenizer: Value::Null,
            post_processor: Value::Null,
            decoder: Value::Null,
            model,
        }
    }

    /// Writes the document.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(|error| bad(TOKENIZER_FILE, error))
    }
}

/// An added token with its id.
pub(super) fn added(id: u32, token: &AddedToken) -> Value {
    json!({"id": id, "content": token.content, "single_word": token.single_word, "lstrip": token.lstrip, "rstrip": token.rstrip,
        "normalized": token.normalized, "special": token.special})
}

/// The pre-tokenizer or decoder of the alphabet of bytes.
pub(super) fn byte_level(add_prefix_space: bool, use_regex: bool) -> Value {
    json!({"type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": true, "use_regex": use_regex})
}

/// The pre-tokenizer that isolates the matches of an expression.
pub(super) fn isolated(regex: &str) -> Value {
    json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": false})
}

/// A token before or after a text: its text and its id.
pub(super) type Around<'a> = Option<(&'a str, u32)>;

/// The post-processor that puts tokens around a text; null for none. The one after a pair of texts comes at its end if it `ends_pairs`, else
/// after the first text.
pub(super) fn framed(before: Around<'_>, after: Around<'_>, ends_pairs: bool) -> Value {
    if before.is_none() && after.is_none() {
        return Value::Null;
    }
    let mut specials = Map::new();
    let mut piece = |(text, id): (&str, u32)| {
        specials.insert(
            text.to_owned(),
            json!({"id": text, "ids": [id], "tokens": [text]}),
        );
        json!({"SpecialToken": {"id": text, "type_id": 0}})
    };
    let mut single = Vec::from_iter(before.map(&mut piece));
    single.push(json!({"Sequence": {"id": "A", "type_id": 0}}));
    let (mut pair, second) = (
        single.clone(),
        json!({"Sequence": {"id": "B", "type_id": 1}}),
    );
    let last = after.map(&mut piece);
    single.extend(last.clone());
    match ends_pairs {
        true => pair.extend(std::iter::once(second).chain(last)),
        false => pair.extend(last.into_iter().chain([second])),
    }
    json!({"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": specials})
}

/// Vocabulary and merges of a document; the merges are sorted by rank, best first.
#[derive(Serialize)]
pub(super) struct Model<'a> {
    r#type: &'static str,
    dropout: (),
    unk_token: Option<&'a str>,
    continuing_subword_prefix: (),
    end_of_word_suffix: (),
    fuse_unk: bool,
    byte_fallback: bool,
    ignore_merges: bool,
    #[serde(serialize_with = "vocabulary")]
    vocab: Vec<(&'a str, usize)>,
    #[serde(serialize_with = "pairs")]
    merges: Vec<(&'a str, &'a str)>,
}

impl<'a> Model<'a> {
    pub fn new(vocab: Vec<(&'a str, usize)>, merges: Vec<(&'a str, &'a str)>) -> Self {
        Self {
            r#type: "BPE",
            dropout: (),
            unk_token: None,
            continuing_subword_prefix: (),
            end_of_word_suffix: (),
            fuse_unk: false,
            byte_fallback: false,
            ignore_merges: false,
            vocab,
            merges,
        }
    }

    /// Makes characters without a token fall back to byte tokens if `to_bytes`, else to the token `unknown`. With `to_bytes`, a run of
    /// characters that have no byte tokens either gives a single `unknown`.
    pub fn falling_back(self, to_bytes: bool, unknown: Option<&'a str>) -> Self {
        Self {
            fuse_unk: to_bytes,
            byte_fallback: to_bytes,
            unk_token: unknown,
            ..self
        }
    }

    /// Sets whether a word that is a token is taken as a whole, without merges.
    pub fn ignoring_merges(self, ignored: bool) -> Self {
        Self {
            ignore_merges: ignored,
            ..self
        }
    }
}

fn vocabulary<S: Serializer>(vocab: &[(&str, usize)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(vocab.iter().copied())
}

/// A merge as in `tokenizer.json`: `left right`, which every version of the tokenizers library reads, or a list of two if a part of any
/// merge contains a space.
#[derive(Serialize)]
#[serde(untagged)]
enum Merge<'a> {
    Joined(String),
    Apart([&'a str; 2]),
}

fn pairs<S: Serializer>(pairs: &[(&str, &str)], serializer: S) -> Result<S::Ok, S::Error> {
    let has_space = |(left, right): &(&str, &str)| left.contains(' ') || right.contains(' ');
    let spaced = pairs.iter().any(has_space);
    let one = |&(left, right)| match spaced {
        true => Merge::Apart([left, right]),
        false => Merge::Joined(format!("{left} {right}")),
    };
    serializer.collect_seq(pairs.iter().map(one))
}
