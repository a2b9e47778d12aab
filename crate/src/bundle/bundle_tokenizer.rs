//! The tokenizer of a model, checked against its rows, with the ids that end a text by all documents that state some.

use serde_json::Value;

use super::files::GENERATION;
use super::tensors::Bundle;
use super::tokenizer_files::not_carried;
use crate::error::{Error, Refusal, Result, Warning, word};
use crate::formats::not_json;
use crate::tokenizer::{Tokenizer, listed_briefly};

/// Splits off the refusal of a tokenizer, because the tensors stay usable; a file that cannot be read remains an error.
pub(super) fn or_refused<T>(result: Result<Option<T>>) -> Result<(Option<T>, Option<Error>)> {
    match result {
        Err(error) if of_tokenizer(&error) => Ok((None, Some(error))),
        other => other.map(|found| (found, None)),
    }
}

fn of_tokenizer(error: &Error) -> bool {
    let code = error.code();
    code.starts_with("tokenizer.")
        || code.starts_with("template.")
        || code == word!("source.too-large").text()
}

impl Bundle {
    /// Keeps the reason why the model is used without a tokenizer, if there is one, and warns about it.
    pub(super) fn refuse_tokenizer(&mut self, refused: Option<Error>) {
        if let Some(error) = refused {
            let without = "The model is used without a tokenizer.";
            let warning = Warning::of_error(&error, "tokenizer", without);
            self.warnings.push(warning);
            self.tokenizer_refused = Some(error);
        }
    }

    /// Takes the tokenizer of the file `artifact`. Added tokens beyond the rows of the embedding are disabled, with a warning; a vocabulary
    /// with more tokens than rows is refused here.
    pub(super) fn take_tokenizer(&mut self, tokenizer: Option<Tokenizer>, artifact: &str) {
        let Some(mut tokenizer) = tokenizer else {
            return;
        };
        let (found, rows) = (tokenizer.vocab_size(), self.config.vocab_size);
        let beyond = match found > rows {
            true => tokenizer.limit(rows),
            false => Some(Vec::new()),
        };
        let Some(beyond) = beyond else {
            let refusal = Refusal::new(word!("tokenizer.size.mismatch"))
                .stage("bind")
                .of(artifact)
                .expected(format!("at most {rows} tokens, added ones aside"))
                .found(found)
                .hint("the tokenizer is of another model, or the weights are");
            return self.refuse_tokenizer(Some(refusal.into()));
        };
        if !beyond.is_empty() {
            let subject = listed_briefly(&beyond);
            self.warn(word!("tokenizer.tokens.beyond"), &subject);
        }
        self.warnings.extend(tokenizer.notes());
        self.tokenizer = Some(tokenizer);
    }

    /// Keeps `generation_config.json` and adds the ids that end a text according to it. A document that is no JSON object was refused together
    /// with the tokenizer, and is not passed on.
    pub(super) fn add_generation_config(&mut self, bytes: Option<Vec<u8>>) {
        let Some(bytes) = bytes else { return };
        if let Some(flaw) = not_json(&bytes) {
            self.warnings.push(not_carried(GENERATION, &flaw));
            return;
        }
        let ids = self.end_ids(&value_of(Some(&bytes)));
        if let Some(tokenizer) = &mut self.tokenizer {
            tokenizer.add_eos(&ids);
        }
        self.generation_config_json = Some(bytes);
    }

    /// Adds the ids that end a text according to `config.json` and `special_tokens_map.json`, which come after those of the other documents.
    /// Only special tokens are added: transformers writes the number 2 where no one chose an id.
    pub(super) fn add_other_ends(&mut self, config: &Value, specials: Option<&[u8]>) {
        let ids = self.end_ids(config);
        let Some(tokenizer) = &mut self.tokenizer else {
            return;
        };
        let ends = |id: &u32| tokenizer.is_special(*id) || tokenizer.eos().contains(id);
        let (ids, ordinary): (Vec<u32>, Vec<u32>) = ids.into_iter().partition(ends);
        tokenizer.add_eos(&ids);
        tokenizer.add_eos_token(&value_of(specials)["eos_token"]);
        // Someone chose the ids of a list.
        if config["eos_token_id"].is_array() {
            for id in ordinary {
                self.warn(word!("tokenizer.end.ordinary"), &id.to_string());
            }
        }
    }

    /// Lists `eos_token_id` of a document: ids of the vocabulary.
    fn end_ids(&self, document: &Value) -> Vec<u32> {
        let stated = &document["eos_token_id"];
        let ids = stated
            .as_array()
            .map_or(std::slice::from_ref(stated), Vec::as_slice);
        let rows = self.config.vocab_size as u64;
        ids.iter()
            .filter_map(|id| id.as_u64().filter(|id| *id < rows))
            .filter_map(|id| u32::try_from(id).ok())
            .collect()
    }
}

/// Reads a document; null if it is absent or no JSON.
pub(super) fn value_of(document: Option<&[u8]>) -> Value {
    document
        .and_then(|bytes| serde_json::from_slice(bytes).ok())
        .unwrap_or_default()
}
