//! Vocabularies of single characters, for training from scratch.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::parts::{PartsModel, TokenizerParts};
use crate::error::{Error, Result};

/// Returns a vocabulary with one token for each distinct character of `text`, without merges.
pub(super) fn parts(text: &str) -> Result<TokenizerParts> {
    let distinct: BTreeSet<char> = text.chars().collect();
    if distinct.is_empty() {
        return Err(Error::DataTooShort { need: 1, have: 0 });
    }
    Ok(TokenizerParts {
        model: PartsModel::Characters,
        tokens: distinct.into_iter().map(String::from).collect(),
        types: Vec::new(),
        bos: None,
        eos: Vec::new(),
        pad: None,
        unk: None,
        add_bos: None,
        add_eos: None,
        chat_template: None,
        named_templates: Vec::new(),
        lstrip: Vec::new(),
        rstrip: Vec::new(),
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
    vocab
        .iter()
        .map(|(text, &id)| {
            let mut characters = text.chars();
            match (characters.next(), characters.next()) {
                (Some(character), None) => Some((character, id)),
                _ => None,
            }
        })
        .collect()
}
