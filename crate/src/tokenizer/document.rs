//! Reads and writes a `tokenizer.json` with little memory.

use serde::{Serialize, Serializer};
use serde_json::Value;
use tokenizers::models::bpe::BPE;
use tokenizers::{DecoderWrapper, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper, TokenizerImpl};

use super::parts::TokenizerParts;
use super::{TOKENIZER_FILE, bad};
use crate::error::Result;

/// A tokenizer whose vocabulary is read pair by pair into its table.
type Streamed = TokenizerImpl<BPE, NormalizerWrapper, PreTokenizerWrapper, PostProcessorWrapper, DecoderWrapper>;

/// The tokenizer of a document. Where it is byte pair encoding, as nearly all large ones are, no tree of the whole model exists: of 150,000
/// tokens that would take a hundred megabytes. Other models, and documents with a fault, go the library's usual way.
pub(super) fn read(document: &[u8]) -> Result<tokenizers::Tokenizer> {
    match serde_json::from_slice::<Streamed>(document) {
        Ok(streamed) => Ok(streamed.into()),
        Err(_) => tokenizers::Tokenizer::from_bytes(document).map_err(|error| bad(TOKENIZER_FILE, error)),
    }
}

/// A document of byte pair encoding, written pair by pair. The order of its fields is the one in which it lists them.
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

/// Its vocabulary and merges, best first.
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

    /// Bytes without a token of their own become tokens of bytes, or `unknown`, one for all that follow each other.
    pub(super) fn falling_back(self, to_bytes: bool, unknown: Option<&'a str>) -> Self {
        Self { fuse_unk: to_bytes, byte_fallback: to_bytes, unk_token: unknown, ..self }
    }

    /// A word that is a token is never put together from parts.
    pub(super) fn ignoring_merges(self, ignored: bool) -> Self {
        Self { ignore_merges: ignored, ..self }
    }
}

fn vocabulary<S: Serializer>(parts: &&TokenizerParts, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_map(parts.listed())
}

/// A merge as `tokenizer.json` has it: `left right`, which every version of the tokenizers library reads, or lists of two where a part of
/// any has a space of its own.
#[derive(Serialize)]
#[serde(untagged)]
enum Merge<'a> {
    Joined(String),
    Apart([&'a str; 2]),
}

fn pairs<S: Serializer>(pairs: &[(&str, &str)], serializer: S) -> std::result::Result<S::Ok, S::Error> {
    let spaced = pairs.iter().any(|(left, right)| left.contains(' ') || right.contains(' '));
    let one = |&(left, right)| if spaced { Merge::Apart([left, right]) } else { Merge::Joined(format!("{left} {right}")) };
    serializer.collect_seq(pairs.iter().map(one))
}
