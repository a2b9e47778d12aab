//! What travels with the weights: configuration and tokenizer, byte for byte as they came.

use serde_json::json;

use crate::bundle::tensors::no_tokenizer;
use crate::bundle::{Bundle, SourceFormat, Warning, config_to_hf, edited_config};
use crate::config::{ModelConfig, Precision};
use crate::error::{Error, Result};
use crate::tokenizer::Tokenizer;

const CONFIG: &str = "config.json";

/// Tokenizer and documents of a model.
#[derive(Debug, Clone)]
pub struct ModelAssets {
    /// Turns text into ids and back.
    pub tokenizer: Option<Tokenizer>,
    /// What was odd but legal about the files.
    pub warnings: Vec<Warning>,
    tokenizer_refused: Option<Error>,
    /// File name and bytes: config.json, generation_config.json and the tokenizer's files, as present.
    pub documents: Vec<(String, Vec<u8>)>,
}

impl ModelAssets {
    /// The assets of a model that was opened. Documents of a folder keep their bytes; those of a GGUF are written from its metadata, with
    /// all ids that end a text.
    pub fn of_bundle(bundle: &Bundle) -> Self {
        let mut assets = Self::of_config(&bundle.config, bundle.tokenizer.clone());
        if let Some(bytes) = &bundle.config_json {
            assets.documents[0].1.clone_from(bytes);
        }
        let generation = bundle.generation_config_json.clone().or_else(|| generation_config(bundle));
        assets.documents.extend(generation.map(|bytes| ("generation_config.json".into(), bytes)));
        assets.warnings.clone_from(&bundle.warnings);
        assets.tokenizer_refused = bundle.tokenizer_refused().cloned();
        assets
    }

    /// The tokenizer; without one, why there is none.
    pub fn need_tokenizer(&self) -> Result<&Tokenizer> {
        self.tokenizer.as_ref().ok_or_else(|| no_tokenizer(self.tokenizer_refused.as_ref()))
    }

    /// The documents that go with weights of this shape and precision: `config.json` states the dtype and the rows of the embedding, and
    /// keeps every other byte.
    pub fn documents_for(&self, config: &ModelConfig, precision: Precision) -> Result<Vec<(String, Vec<u8>)>> {
        let dtype = match precision {
            Precision::F32 => "float32",
            Precision::Bf16 => "bfloat16",
        };
        let edited = |(name, bytes): &(String, Vec<u8>)| {
            let bytes = if name == CONFIG { edited_config(bytes, dtype, config.vocab_size)? } else { bytes.clone() };
            Ok((name.clone(), bytes))
        };
        self.documents.iter().map(edited).collect()
    }

    /// The assets of a new model, from its configuration.
    pub fn of_config(config: &ModelConfig, tokenizer: Option<Tokenizer>) -> Self {
        let mut text = serde_json::to_vec_pretty(&config_to_hf(config)).unwrap_or_default();
        text.push(b'\n');
        let mut documents = vec![(CONFIG.to_string(), text)];
        documents.extend(tokenizer.iter().flat_map(Tokenizer::assets));
        Self { tokenizer, warnings: Vec::new(), tokenizer_refused: None, documents }
    }
}

/// `generation_config.json` of a GGUF: its metadata hold the ids that begin, end and pad a text, and no other document has them.
fn generation_config(bundle: &Bundle) -> Option<Vec<u8>> {
    let tokenizer = bundle.tokenizer.as_ref().filter(|_| bundle.source_format == SourceFormat::Gguf)?;
    let mut document = serde_json::Map::new();
    let mut set = |key: &str, value: serde_json::Value| document.insert(key.to_string(), value);
    if let Some(bos) = tokenizer.bos().first() {
        set("bos_token_id", json!(bos));
    }
    match tokenizer.eos() {
        [] => None,
        [only] => set("eos_token_id", json!(only)),
        all => set("eos_token_id", json!(all)),
    };
    if let Some(pad) = tokenizer.pad() {
        set("pad_token_id", json!(pad));
    }
    let mut text = serde_json::to_vec_pretty(&document).unwrap_or_default();
    text.push(b'\n');
    Some(text)
}
