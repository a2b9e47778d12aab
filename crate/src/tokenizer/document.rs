//! Reads and writes a `tokenizer.json` with little memory.

use serde::{Serialize, Serializer};
use serde_json::Value;
use tokenizers::models::bpe::BPE;
use tokenizers::{
    DecoderWrapper, ModelWrapper, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper,
    TokenizerImpl,
};

use super::budget::Parts;
use super::parts::TokenizerParts;
use super::{TOKENIZER_FILE, replacement, unread};
use crate::error::Result;

/// A tokenizer with a model of type `M`.
type With<M> =
    TokenizerImpl<M, NormalizerWrapper, PreTokenizerWrapper, PostProcessorWrapper, DecoderWrapper>;

/// Reads the tokenizer of a document, with `parts` in place of its own. For byte pair encoding, as in nearly all large ones, no tree of
/// the whole model is built: for 150,000 tokens it would take a hundred megabytes. Other models, and faulty documents, are read in the
/// library's usual way.
pub(super) fn read(document: &[u8], parts: &Parts) -> Result<tokenizers::Tokenizer> {
    match replacement::read::<With<BPE>>(document, parts) {
        Ok(streamed) => Ok(streamed.into()),
        Err(_) => match replacement::read::<With<ModelWrapper>>(document, parts) {
            Ok(read) => Ok(read.into()),
            Err(error) => Err(unread(TOKENIZER_FILE, document, error)),
        },
    }
}

/// A document of byte pair encoding, written pair by pair. The order of its fields is that of the file.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    pub(super) version: &'static str,
    pub(super) truncation: (),
    pub(super) padding: (),
    pub(super) added_tokens: Vec<Value>,
    pub(super) normalizer: Value,
    pub(super) pre_tokenizer: Value,
    pub(super) post_processor: Value,
    pub(super) decoder: Value,
    pub(super) model: Model<'a>,
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
    vocab: &'a TokenizerParts,
    #[serde(serialize_with = "pairs")]
    merges: Vec<(&'a str, &'a str)>,
}

impl<'a> Model<'a> {
    pub(super) fn new(vocab: &'a TokenizerParts, merges: Vec<(&'a str, &'a str)>) -> Self {
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
    pub(super) fn falling_back(self, to_bytes: bool, unknown: Option<&'a str>) -> Self {
        Self {
            fuse_unk: to_bytes,
            byte_fallback: to_bytes,
            unk_token: unknown,
            ..self
        }
    }

    /// Sets whether a word that is a token is taken as a whole, without merges.
    pub(super) fn ignoring_merges(self, ignored: bool) -> Self {
        Self {
            ignore_merges: ignored,
            ..self
        }
    }
}

fn vocabulary<S: Serializer>(
    parts: &&TokenizerParts,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_map(parts.listed())
}

/// A merge as in `tokenizer.json`: `left right`, which every version of the tokenizers library reads, or a list of two if a part of any
/// merge contains a space.
#[derive(Serialize)]
#[serde(untagged)]
enum Merge<'a> {
    Joined(String),
    Apart([&'a str; 2]),
}

fn pairs<S: Serializer>(
    pairs: &[(&str, &str)],
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    let spaced = pairs
        .iter()
        .any(|(left, right)| left.contains(' ') || right.contains(' '));
    let one = |&(left, right)| {
        if spaced {
            Merge::Apart([left, right])
        } else {
            Merge::Joined(format!("{left} {right}"))
        }
    };
    serializer.collect_seq(pairs.iter().map(one))
}
