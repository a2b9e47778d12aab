//! Documents that accompany the weights: configuration and tokenizer, byte for byte as they were read.

use serde_json::{Map, Value, json};

use super::tensors::no_tokenizer;
use crate::bundle::Bundle;
use crate::config::{ModelConfig, Precision};
use crate::error::{Error, Result, Warning};
use crate::families::{config_to_hf, edited, edited_config, object};
use crate::formats::GgufValue;
use crate::state::SourceFormat;
use crate::tokenizer::Tokenizer;

const CONFIG: &str = "config.json";
const GENERATION: &str = "generation_config.json";
const BOS: &str = "bos_token_id";
const EOS: &str = "eos_token_id";
const PAD: &str = "pad_token_id";

/// Tokenizer and documents of a model.
#[derive(Debug, Clone)]
pub struct ModelAssets {
    /// Tokenizer, which converts text to ids and back.
    #[doc(hidden)]
    pub tokenizer: Option<Tokenizer>,
    /// Unusual but allowed properties of the files.
    #[doc(hidden)]
    pub warnings: Vec<Warning>,
    tokenizer_refused: Option<Error>,
    /// Keys of a GGUF file about the origin of the model: its authors, their license, what it was made from.
    pub(crate) origin: Vec<(String, GgufValue)>,
    /// File names and bytes of config.json, generation_config.json and the tokenizer's files, as present.
    #[doc(hidden)]
    pub documents: Vec<(String, Vec<u8>)>,
    /// Unknown fields of the adapter that is attached to the model. They are written back.
    #[doc(hidden)]
    pub kept: Map<String, Value>,
}

impl ModelAssets {
    /// Returns the assets of an opened model. Documents of a folder keep their bytes; those of a GGUF file are written from its metadata, with
    /// all ids that end a text.
    pub fn of_bundle(bundle: &Bundle) -> Self {
        let mut assets = Self::of_config(&bundle.config, bundle.tokenizer.clone());
        if let Some(bytes) = &bundle.config_json {
            assets.documents[0].1.clone_from(bytes);
        }
        assets.documents.extend(
            bundle
                .generation_config_json
                .clone()
                .map(|bytes| (GENERATION.to_string(), bytes)),
        );
        if bundle.source_format == SourceFormat::Gguf
            && bundle.generation_config_json.is_none()
            && bundle.tokenizer.is_some()
        {
            // The metadata hold the ids that begin, end and pad a text, and no other document has them.
            let made = assets.generation(&assets.documents).unwrap_or_default();
            assets.documents.push((GENERATION.to_string(), made));
        }
        assets
            .documents
            .extend(bundle.tokenizer_documents.iter().cloned());
        assets.warnings.clone_from(&bundle.warnings);
        assets.kept = bundle
            .attached()
            .map(|adapter| adapter.unknown.clone())
            .unwrap_or_default();
        assets.tokenizer_refused = bundle.tokenizer_refused().cloned();
        assets.origin.clone_from(&bundle.origin);
        assets
    }

    /// Returns the tokenizer.
    ///
    /// # Errors
    /// The reason why there is none: its refusal, or that the files have none.
    pub fn need_tokenizer(&self) -> Result<&Tokenizer> {
        self.tokenizer
            .as_ref()
            .ok_or_else(|| no_tokenizer(self.tokenizer_refused.as_ref()))
    }

    /// Returns the tokenizer if there is one.
    ///
    /// # Errors
    /// The refusal of a tokenizer that was refused, which is not the same as having none.
    pub(crate) fn tokenizer_or_none(&self) -> Result<Option<&Tokenizer>> {
        match (&self.tokenizer, &self.tokenizer_refused) {
            (None, Some(refused)) => Err(refused.clone()),
            (tokenizer, _) => Ok(tokenizer.as_ref()),
        }
    }

    /// Returns the documents for weights of this shape and precision: `config.json` states the dtype, the rows of the embedding and whether the
    /// head is tied, loses `_name_or_path`, and keeps every other byte.
    ///
    /// # Errors
    /// `bundle.config.json` if `config.json` is no JSON object.
    #[doc(hidden)]
    pub fn documents_for(
        &self,
        config: &ModelConfig,
        precision: Precision,
    ) -> Result<Vec<(String, Vec<u8>)>> {
        let dtype = match precision {
            Precision::F32 => "float32",
            Precision::Bf16 => "bfloat16",
        };
        self.edited(config, dtype)
    }

    /// Returns the documents like [`Self::documents_for`], with the dtype in PyTorch's words, and always with a `generation_config.json`: it
    /// states all ids that end a text, and those that begin and pad one; values that it has already are kept.
    ///
    /// # Errors
    /// `bundle.config.json` if `config.json` is no JSON object.
    #[doc(hidden)]
    pub fn folder_documents(
        &self,
        config: &ModelConfig,
        dtype: &str,
    ) -> Result<Vec<(String, Vec<u8>)>> {
        let mut documents = self.edited(config, dtype)?;
        let generation = self.generation(&documents)?;
        match documents.iter_mut().find(|(name, _)| name == GENERATION) {
            Some((_, bytes)) => *bytes = generation,
            None => documents.push((GENERATION.to_string(), generation)),
        }
        Ok(documents)
    }

    fn edited(&self, config: &ModelConfig, dtype: &str) -> Result<Vec<(String, Vec<u8>)>> {
        let one = |(name, bytes): &(String, Vec<u8>)| {
            let edited =
                || edited_config(bytes, dtype, config.vocab_size, config.tie_word_embeddings);
            Ok((
                name.clone(),
                if name == CONFIG {
                    edited()?
                } else {
                    bytes.clone()
                },
            ))
        };
        self.documents.iter().map(one).collect()
    }

    /// Returns `generation_config.json` with the ids of the tokenizer, or where it has none, of `config.json`.
    fn generation(&self, documents: &[(String, Vec<u8>)]) -> Result<Vec<u8>> {
        let document = |name: &str| {
            documents
                .iter()
                .find(|(found, _)| found == name)
                .map(|(_, bytes)| bytes.as_slice())
        };
        let Some(given) =
            document(GENERATION).map_or(Some(Map::new()), |bytes| object(bytes, GENERATION).ok())
        else {
            // The document is not JSON: nothing can be added to it.
            return Ok(document(GENERATION).unwrap_or_default().to_vec());
        };
        let config = document(CONFIG)
            .and_then(|bytes| object(bytes, CONFIG).ok())
            .unwrap_or_default();
        let tokenizer = self.tokenizer.as_ref();
        let own = [
            (BOS, tokenizer.map_or(&[][..], Tokenizer::bos).to_vec()),
            (EOS, tokenizer.map_or(&[][..], Tokenizer::eos).to_vec()),
            (
                PAD,
                tokenizer.and_then(Tokenizer::pad).into_iter().collect(),
            ),
        ];
        let (mut changed, mut added) = (Vec::new(), Vec::new());
        for (key, ids) in own {
            let said = given.get(key).map(ids_of).unwrap_or_default();
            let ids = match ids.as_slice() {
                [] => config.get(key).map(ids_of).unwrap_or_default(),
                _ => ids.into_iter().map(u64::from).collect(),
            };
            let absent: Vec<u64> = ids.into_iter().filter(|id| !said.contains(id)).collect();
            if absent.is_empty() || key != EOS && !said.is_empty() {
                continue;
            }
            let value = match [said, absent].concat().as_slice() {
                [only] => json!(only),
                all => json!(all),
            };
            let list = if given.contains_key(key) {
                &mut changed
            } else {
                &mut added
            };
            list.push((key, value));
        }
        if document(GENERATION).is_some() {
            let edits = |key: &str| {
                changed
                    .iter()
                    .find(|(found, _)| *found == key)
                    .map(|(_, value)| value.to_string())
            };
            let added: Vec<(&str, String)> = added
                .iter()
                .map(|(key, value)| (*key, value.to_string()))
                .collect();
            return edited(
                document(GENERATION).unwrap_or_default(),
                GENERATION,
                &edits,
                &added,
                &[],
            );
        }
        let fresh: Map<String, Value> = added
            .into_iter()
            .map(|(key, value)| (key.to_string(), value))
            .collect();
        let mut text = serde_json::to_vec_pretty(&fresh).unwrap_or_default();
        text.push(b'\n');
        Ok(text)
    }

    /// Returns these assets with additional ids that end a text or a turn, in the tokenizer and in `generation_config.json`.
    #[doc(hidden)]
    #[must_use]
    pub fn with_ends(mut self, ids: &[u32]) -> Self {
        let Some(tokenizer) = self.tokenizer.as_mut().filter(|_| !ids.is_empty()) else {
            return self;
        };
        tokenizer.add_eos(ids);
        if let Ok(document) = self.generation(&self.documents) {
            self.documents.retain(|(name, _)| name != GENERATION);
            self.documents.push((GENERATION.to_owned(), document));
        }
        self
    }

    /// Creates the assets of a new model from its configuration.
    pub fn of_config(config: &ModelConfig, tokenizer: Option<Tokenizer>) -> Self {
        let mut text = serde_json::to_vec_pretty(&config_to_hf(config)).unwrap_or_default();
        text.push(b'\n');
        let mut documents = vec![(CONFIG.to_string(), text)];
        documents.extend(tokenizer.iter().flat_map(Tokenizer::assets));
        Self {
            tokenizer,
            warnings: Vec::new(),
            tokenizer_refused: None,
            origin: Vec::new(),
            documents,
            kept: Map::new(),
        }
    }
}

/// Reads one id, or a list of ids.
fn ids_of(value: &Value) -> Vec<u64> {
    match value {
        Value::Array(list) => list.iter().filter_map(Value::as_u64).collect(),
        one => one.as_u64().into_iter().collect(),
    }
}
