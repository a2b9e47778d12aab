//! The tokenizer of a model, checked against its rows, with the ids that end a text by all documents that state some.

use serde_json::Value;

use super::files::WITHOUT_TOKENIZER;
use super::tokenizer_files::{GENERATION, not_carried};
use crate::error::{Error, Refusal, Warning, word};
use crate::formats::not_json;
use crate::tokenizer::{Tokenizer, listed_briefly};

/// A tokenizer for a model of `rows` rows, with the document that states how to generate.
pub(super) struct TokenizerPart {
    pub(super) tokenizer: Option<Tokenizer>,
    /// Reason why there is none.
    pub(super) refused: Option<Error>,
    /// `generation_config.json` byte for byte, if present.
    pub(super) generation_config_json: Option<Vec<u8>>,
    rows: usize,
}

impl TokenizerPart {
    /// Takes the tokenizer of the file `artifact`, or the reason why it was refused. Added tokens beyond the rows of the embedding are disabled,
    /// with a warning; a vocabulary with more tokens than rows is refused here.
    pub(super) fn of(
        tokenizer: Option<Tokenizer>,
        refused: Option<Error>,
        artifact: &str,
        rows: usize,
        warnings: &mut Vec<Warning>,
    ) -> Self {
        let mut part = Self {
            tokenizer,
            refused,
            generation_config_json: None,
            rows,
        };
        let Some(tokenizer) = part.tokenizer.as_mut() else {
            return part;
        };
        let found = tokenizer.vocab_size();
        let beyond = if found > rows {
            tokenizer.limit(rows)
        } else {
            Some(Vec::new())
        };
        if let Some(beyond) = beyond {
            if !beyond.is_empty() {
                warnings.push(Warning::new(
                    word!("tokenizer.tokens.beyond"),
                    &listed_briefly(&beyond),
                ));
            }
            warnings.extend(tokenizer.notes());
            return part;
        }
        let refusal = Refusal::new(word!("tokenizer.size.mismatch"))
            .stage("bind")
            .of(artifact);
        let hint = "the tokenizer is of another model, or the weights are";
        let error = refusal
            .expected(format!("at most {rows} tokens, added ones aside"))
            .found(found)
            .hint(hint)
            .into();
        warnings.push(Warning::of_error(&error, "tokenizer", WITHOUT_TOKENIZER));
        Self {
            tokenizer: None,
            refused: Some(error),
            ..part
        }
    }

    /// Keeps the document and adds the ids that end a text according to it. A document that is no JSON object was refused together with the
    /// tokenizer, and is not passed on.
    pub(super) fn add_generation_config(
        &mut self,
        bytes: Option<Vec<u8>>,
        warnings: &mut Vec<Warning>,
    ) {
        let Some(bytes) = bytes else { return };
        if let Some(flaw) = not_json(&bytes) {
            warnings.push(not_carried(GENERATION, &flaw));
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
    pub(super) fn add_other_ends(
        &mut self,
        config: &Value,
        specials: Option<&[u8]>,
        warnings: &mut Vec<Warning>,
    ) {
        let ids = self.end_ids(config);
        let Some(tokenizer) = &mut self.tokenizer else {
            return;
        };
        let (ids, ordinary): (Vec<u32>, Vec<u32>) = ids
            .into_iter()
            .partition(|&id| tokenizer.is_special(id) || tokenizer.eos().contains(&id));
        // Someone chose the ids of a list.
        if config["eos_token_id"].is_array() {
            warnings.extend(
                ordinary
                    .iter()
                    .map(|id| Warning::new(word!("tokenizer.end.ordinary"), &id.to_string())),
            );
        }
        tokenizer.add_eos(&ids);
        let specials: Value = specials
            .and_then(|bytes| serde_json::from_slice(bytes).ok())
            .unwrap_or_default();
        tokenizer.add_eos_token(&specials["eos_token"]);
    }

    /// Returns `eos_token_id` of a document: ids of the vocabulary.
    fn end_ids(&self, document: &Value) -> Vec<u32> {
        let ids = match &document["eos_token_id"] {
            Value::Array(list) => list.clone(),
            other => vec![other.clone()],
        };
        let rows = self.rows as u64;
        ids.iter()
            .filter_map(|id| id.as_u64().filter(|id| *id < rows))
            .filter_map(|id| u32::try_from(id).ok())
            .collect()
    }
}
