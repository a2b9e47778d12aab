//! Vocabularies of single characters, for training from scratch.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value, json};

use crate::error::{Error, Result};

/// `tokenizer.json` with one token for each distinct character of `text`.
pub(super) fn document(text: &str) -> Result<Value> {
    let distinct: BTreeSet<char> = text.chars().collect();
    if distinct.is_empty() {
        return Err(Error::DataTooShort { need: 1, have: 0 });
    }
    let vocab: Map<String, Value> = distinct.iter().enumerate().map(|(id, character)| (character.to_string(), json!(id))).collect();
    Ok(json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": null, "post_processor": null, "decoder": decoder(), "model": model(vocab)
    }))
}

/// What puts characters together again.
pub(super) fn decoder() -> Value {
    json!({"type": "Fuse"})
}

/// A model without merges: each token stands alone.
pub(super) fn model(vocab: Map<String, Value>) -> Value {
    json!({"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
        "fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": vocab, "merges": []})
}

/// The table of a vocabulary of single characters without merges: what [`document`] makes.
pub(super) fn table(inner: &tokenizers::Tokenizer, document: &[u8], vocab: &HashMap<String, u32>) -> Option<HashMap<char, u32>> {
    let plain = inner.get_pre_tokenizer().is_none() && inner.get_normalizer().is_none() && inner.get_post_processor().is_none();
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
