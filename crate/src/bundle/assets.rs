//! Documents that accompany the weights: configuration and tokenizer, byte for byte as they were read.

use serde_json::{Map, Value, json};

use super::files::{CONFIG, GENERATION};
use super::tensors::no_tokenizer;
use super::tokenizer_files::Documents;
use crate::bundle::Bundle;
use crate::config::{ModelConfig, Precision};
use crate::error::{Error, Result, Warning};
use crate::families::{config_to_hf, edited, edited_config, object};
use crate::formats::GgufValue;
use crate::state::SourceFormat;
use crate::tokenizer::Tokenizer;

const BOS: &str = "bos_token_id";
const EOS: &str = "eos_token_id";
const PAD: &str = "pad_token_id";

/// Tokenizer and documents of a model ([example](crate)).
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
    pub documents: Documents,
    /// Unknown fields of the adapter that is attached to the model. They are written back.
    #[doc(hidden)]
    pub kept: Map<String, Value>,
}

impl ModelAssets {
    /// Takes the assets of an opened model. Documents of a folder keep their bytes; those of a GGUF file are written from its metadata, with
    /// all ids that end a text.
    pub fn of_bundle(bundle: &Bundle) -> Self {
        let mut assets = Self::of_config(&bundle.config, bundle.tokenizer.clone());
        if let Some(bytes) = &bundle.config_json {
            assets.documents[0].1.clone_from(bytes);
        }
        let mut generation = bundle.generation_config_json.clone();
        if generation.is_none()
            && bundle.source_format == SourceFormat::Gguf
            && bundle.tokenizer.is_some()
        {
            // The metadata hold the ids that begin, end and pad a text, and no other document has them.
            generation = Some(assets.generation(&assets.documents).unwrap_or_default());
        }
        let generation = generation.map(|bytes| (GENERATION.to_string(), bytes));
        assets.documents.extend(generation);
        assets
            .documents
            .extend_from_slice(&bundle.tokenizer_documents);
        let attached = bundle.attached();
        Self {
            warnings: bundle.warnings.clone(),
            tokenizer_refused: bundle.tokenizer_refused.clone(),
            origin: bundle.origin.clone(),
            kept: attached.map_or(Map::new(), |adapter| adapter.unknown.clone()),
            ..assets
        }
    }

    /// The tokenizer.
    ///
    /// # Errors
    /// The reason why there is none: its refusal, or that the files have none.
    pub fn need_tokenizer(&self) -> Result<&Tokenizer> {
        self.tokenizer
            .as_ref()
            .ok_or_else(|| no_tokenizer(self.tokenizer_refused.as_ref()))
    }

    /// The tokenizer if there is one.
    ///
    /// # Errors
    /// The refusal of a tokenizer that was refused, which is not the same as having none.
    pub(crate) fn tokenizer_or_none(&self) -> Result<Option<&Tokenizer>> {
        match (&self.tokenizer, &self.tokenizer_refused) {
            (None, Some(refused)) => Err(refused.clone()),
            (tokenizer, _) => Ok(tokenizer.as_ref()),
        }
    }

    /// Edits the documents for weights of this shape and precision: `config.json` states the dtype, the rows of the embedding and whether the
    /// head is tied, loses `_name_or_path`, and keeps every other byte.
    ///
    /// # Errors
    /// `bundle.config.json` if `config.json` is no JSON object.
    #[doc(hidden)]
    pub fn documents_for(&self, config: &ModelConfig, precision: Precision) -> Result<Documents> {
        let dtype = match precision {
            Precision::F32 => "float32",
            Precision::Bf16 => "bfloat16",
        };
        self.edited(config, dtype)
    }

    /// Edits the documents like [`Self::documents_for`], with the dtype in PyTorch's words, and always with a `generation_config.json`: it
    /// states all ids that end a text, and those that begin and pad one; values that it has already are kept.
    ///
    /// # Errors
    /// `bundle.config.json` if `config.json` is no JSON object.
    #[doc(hidden)]
    pub fn folder_documents(&self, config: &ModelConfig, dtype: &str) -> Result<Documents> {
        let mut documents = self.edited(config, dtype)?;
        let generation = self.generation(&documents)?;
        match documents.iter_mut().find(|(name, _)| name == GENERATION) {
            Some((_, bytes)) => *bytes = generation,
            None => documents.push((GENERATION.to_string(), generation)),
        }
        Ok(documents)
    }

    fn edited(&self, config: &ModelConfig, dtype: &str) -> Result<Documents> {
        let (rows, tied) = (config.vocab_size, config.tie_word_embeddings);
        let mut documents = self.documents.clone();
        for (name, bytes) in &mut documents {
            if name == CONFIG {
                *bytes = edited_config(bytes, dtype, rows, tied)?;
            }
        }
        Ok(documents)
    }

    /// Writes `generation_config.json` with the ids of the tokenizer, or where it has none, of `config.json`.
    fn generation(&self, documents: &[(String, Vec<u8>)]) -> Result<Vec<u8>> {
        let document = |name: &str| {
            let mut documents = documents.iter();
            let found = documents.find(|(found, _)| found == name);
            found.map(|(_, bytes)| bytes.as_slice())
        };
        let own = document(GENERATION);
        let Ok(given) = own.map_or(Ok(Map::new()), |bytes| object(bytes, GENERATION)) else {
            // The document is not JSON: nothing can be added to it.
            return Ok(own.unwrap_or_default().to_vec());
        };
        let config = document(CONFIG).and_then(|bytes| object(bytes, CONFIG).ok());
        let config = config.unwrap_or_default();
        let tokenizer = self.tokenizer.as_ref();
        let pad = tokenizer.and_then(Tokenizer::pad);
        let (mut changed, mut added) = (Map::new(), Vec::new());
        for (key, ids) in [
            (BOS, tokenizer.map_or(&[][..], Tokenizer::bos)),
            (EOS, tokenizer.map_or(&[][..], Tokenizer::eos)),
            (PAD, pad.as_slice()),
        ] {
            let said = given.get(key).map(ids_of).unwrap_or_default();
            let mut ids: Vec<u64> = ids.iter().copied().map(u64::from).collect();
            if ids.is_empty() {
                ids = config.get(key).map(ids_of).unwrap_or_default();
            }
            ids.retain(|id| !said.contains(id));
            if ids.is_empty() || key != EOS && !said.is_empty() {
                continue;
            }
            let value = match [said, ids].concat().as_slice() {
                [only] => json!(only),
                all => json!(all),
            };
            if given.contains_key(key) {
                changed.insert(key.to_string(), value);
            } else {
                added.push((key, value));
            }
        }
        let Some(own) = own else {
            let fields = added
                .into_iter()
                .map(|(key, value)| (key.to_string(), value));
            return Ok(text_of(&Value::Object(fields.collect())));
        };
        let added: Vec<(&str, String)> = added
            .iter()
            .map(|(key, value)| (*key, value.to_string()))
            .collect();
        let edits = |key: &str| changed.get(key).map(Value::to_string);
        edited(own, GENERATION, &edits, &added, &[])
    }

    /// Adds ids that end a text or a turn, in the tokenizer and in `generation_config.json`.
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
        let mut documents = vec![(CONFIG.to_string(), text_of(&config_to_hf(config)))];
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

/// Writes a document, indented, with one line feed at its end.
fn text_of(document: &Value) -> Vec<u8> {
    format!("{document:#}\n").into_bytes()
}

/// Reads one id, or a list of ids.
fn ids_of(value: &Value) -> Vec<u64> {
    match value {
        Value::Array(list) => list.iter().filter_map(Value::as_u64).collect(),
        one => one.as_u64().into_iter().collect(),
    }
}
