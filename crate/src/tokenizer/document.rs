//! Reads a `tokenizer.json` with little memory.

use tokenizers::models::bpe::BPE;
use tokenizers::{DecoderWrapper, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper, TokenizerImpl};

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
