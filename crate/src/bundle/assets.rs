//! What travels with the weights: configuration and tokenizer, byte for byte as they came.

use crate::bundle::{Bundle, config_to_hf};
use crate::config::ModelConfig;
use crate::tokenizer::Tokenizer;

/// Tokenizer and documents of a model.
#[derive(Debug, Clone)]
pub struct ModelAssets {
    /// Turns text into ids and back.
    pub tokenizer: Option<Tokenizer>,
    /// File name and bytes: config.json, generation_config.json and the tokenizer's files, as present.
    pub documents: Vec<(String, Vec<u8>)>,
}

impl ModelAssets {
    /// Of a model that was opened. Documents of a folder keep their bytes; a GGUF's are written from its metadata.
    pub fn of_bundle(bundle: &Bundle) -> Self {
        let mut assets = Self::of_config(&bundle.config, bundle.tokenizer.clone());
        if let Some(bytes) = &bundle.config_json {
            assets.documents[0].1.clone_from(bytes);
        }
        if let Some(bytes) = &bundle.generation_config_json {
            assets.documents.push(("generation_config.json".into(), bytes.clone()));
        }
        assets
    }

    /// Of a model that starts from a configuration.
    pub fn of_config(config: &ModelConfig, tokenizer: Option<Tokenizer>) -> Self {
        let mut text = serde_json::to_vec_pretty(&config_to_hf(config)).unwrap_or_default();
        text.push(b'\n');
        let mut documents = vec![("config.json".to_string(), text)];
        documents.extend(tokenizer.iter().flat_map(Tokenizer::assets));
        Self { tokenizer, documents }
    }
}
