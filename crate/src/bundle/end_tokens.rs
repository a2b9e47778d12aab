//! Collects the ids that end a text, which several documents of a Hugging Face folder state.

use serde_json::Value;

use super::tensors::Bundle;
use super::tokenizer_files::GENERATION;
use crate::error::word;
use crate::formats::{Warning, not_json};

impl Bundle {
    /// Keeps the document and adds the ids that end a text according to it. A document that is no JSON object was refused together with the
    /// tokenizer, and is not passed on.
    pub(super) fn add_generation_config(&mut self, bytes: Option<Vec<u8>>) {
        let Some(bytes) = bytes else { return };
        if let Some(flaw) = not_json(&bytes) {
            self.warnings.push(Warning::not_carried(GENERATION, &flaw));
            return;
        }
        let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let ids = self.end_ids(&value);
        if let Some(tokenizer) = &mut self.tokenizer {
            tokenizer.add_eos(&ids);
        }
        self.generation_config_json = Some(bytes);
    }

    /// Adds the ids that end a text according to `config.json` and `special_tokens_map.json`, which come after those of the other documents.
    /// Only special tokens are added: transformers writes the number 2 where no one chose an id.
    pub(super) fn add_other_ends(&mut self, config: &Value, specials: Option<&[u8]>) {
        let ids = self.end_ids(config);
        let Some(tokenizer) = &mut self.tokenizer else { return };
        let (ids, ordinary): (Vec<u32>, Vec<u32>) =
            ids.into_iter().partition(|&id| tokenizer.is_special(id) || tokenizer.eos().contains(&id));
        // Someone chose the ids of a list.
        if config["eos_token_id"].is_array() {
            self.warnings.extend(ordinary.iter().map(|id| Warning::new(word!("tokenizer.end.ordinary"), &id.to_string())));
        }
        tokenizer.add_eos(&ids);
        let specials: Value = specials.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default();
        tokenizer.add_eos_token(&specials["eos_token"]);
    }

    /// Returns `eos_token_id` of a document: ids of the vocabulary.
    fn end_ids(&self, document: &Value) -> Vec<u32> {
        let ids = match &document["eos_token_id"] {
            Value::Array(list) => list.clone(),
            other => vec![other.clone()],
        };
        let vocab_size = self.config.vocab_size as u64;
        ids.iter().filter_map(|id| id.as_u64().filter(|id| *id < vocab_size)).filter_map(|id| u32::try_from(id).ok()).collect()
    }
}
