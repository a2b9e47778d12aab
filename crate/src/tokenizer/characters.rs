//! Vocabularies of single characters, for training from scratch.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::parts::TokenizerParts;
use crate::error::{Error, Result};

/// Returns a vocabulary with one token for each distinct character of `text`, without merges.
pub(super) fn parts(text: &str) -> Result<TokenizerParts> {
    let distinct: BTreeSet<char> = text.chars().collect();
    if distinct.is_empty() {
        return Err(Error::DataTooShort { need: 1, have: 0 });
    }
    Ok(TokenizerParts {
        tokens: distinct.into_iter().map(String::from).collect(),
        ..TokenizerParts::default()
    })
}

/// Returns the table of a vocabulary of single characters without merges, as [`parts`] makes it; `None` for other vocabularies.
pub(super) fn table(
    inner: &tokenizers::Tokenizer,
    document: &[u8],
    vocab: &HashMap<String, u32>,
) -> Option<HashMap<char, u32>> {
    let plain = inner.get_pre_tokenizer().is_none()
        && inner.get_normalizer().is_none()
        && inner.get_post_processor().is_none();
    if !plain || !matches!(inner.get_model(), tokenizers::ModelWrapper::BPE(_)) {
        return None;
    }
    let document: Value = serde_json::from_slice(document).ok()?;
    if !document.pointer("/model/merges")?.as_array()?.is_empty() {
        return None;
    }
    let character = |(text, &id): (&String, &u32)| Some((text.parse().ok()?, id));
    vocab.iter().map(character).collect()
}
