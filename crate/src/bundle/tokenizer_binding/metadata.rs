//! Reads the tokenizer of a GGUF file: one asset of all its metadata.

use std::collections::BTreeMap;

use super::{PortableTokenizerBinding, UNNAMED};
use crate::bundle::gguf_tokenizer::{NONE, end_ids, pad_id, tokenizer_parts};
use crate::bundle::gguf_tokenizer_check::check_tokenizer;
use crate::error::Result;
use crate::formats::{GgufFile, GgufValue};
use crate::state::{AssetFormat, TokenizerFamily, TokenizerRecord};
use crate::tokenizer::PartsModel;

/// Name of the asset.
const ASSET: &str = "gguf:tokenizer";
const PREFIX: &str = "tokenizer.ggml.";
const TEMPLATE: &str = "tokenizer.chat_template";

impl PortableTokenizerBinding {
    /// Reads the tokenizer of a GGUF file, or of all parts of a split one; `None` if it has none. The asset `gguf:tokenizer` holds, for every
    /// key that begins with `tokenizer.ggml.`, ascending: length of the key (u64), the key, type (u32), the value's bytes as in the file.
    ///
    /// # Errors
    /// Metadata that contradict themselves, with the codes of crate/FORMATS.md, "Tokenizer of a GGUF"; `name` is the file's.
    pub fn from_gguf(file: &GgufFile, name: &str) -> Result<Option<Self>> {
        let mut keys: Vec<&(String, GgufValue)> = file
            .metadata
            .iter()
            .filter(|(key, _)| key.starts_with(PREFIX))
            .collect();
        keys.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
        let model = file.get("tokenizer.ggml.model").and_then(GgufValue::text);
        if keys.is_empty() || model == Some(NONE) {
            return Ok(None);
        }
        check_tokenizer(file).map_err(|error| error.in_file(name))?;
        let mut asset = Vec::new();
        for (key, value) in keys {
            asset.extend((key.len() as u64).to_le_bytes());
            asset.extend_from_slice(key.as_bytes());
            asset.extend(value.kind().to_le_bytes());
            asset.extend_from_slice(value.bytes());
        }
        let id = |key: &str| {
            file.get(key)
                .and_then(GgufValue::count)
                .and_then(|id| u32::try_from(id).ok())
        };
        let flag = |key: &str| file.get(key).and_then(GgufValue::bool);
        let record = TokenizerRecord {
            family: family(file, model.unwrap_or_default(), name),
            asset_format: AssetFormat::GgufMetadata,
            asset_version: String::new(),
            vocab_size: file
                .get("tokenizer.ggml.tokens")
                .and_then(GgufValue::array)
                .map_or(0, |(_, count)| count),
            add_bos: flag("tokenizer.ggml.add_bos_token"),
            add_eos: flag("tokenizer.ggml.add_eos_token"),
            bos: id("tokenizer.ggml.bos_token_id"),
            eos: end_ids(file),
            pad: pad_id(file),
            unk: id("tokenizer.ggml.unknown_token_id"),
        };
        let mut templates = BTreeMap::new();
        for (key, value) in &file.metadata {
            let Some(rest) = key.strip_prefix(TEMPLATE) else {
                continue;
            };
            let named = if rest.is_empty() {
                Some(UNNAMED)
            } else {
                rest.strip_prefix('.')
            };
            if let (Some(name), Some(text)) = (named, value.text()) {
                // The key without a name holds the template that is used.
                if rest.is_empty() || !templates.contains_key(name) {
                    templates.insert(name.to_string(), text.to_string());
                }
            }
        }
        Self::new(record, [(ASSET.to_string(), asset)].into(), templates).map(Some)
    }
}

fn family(file: &GgufFile, model: &str, name: &str) -> TokenizerFamily {
    match model {
        "gpt2" => TokenizerFamily::BytePairEncoding,
        "llama" => TokenizerFamily::SentencePiece,
        "bert" => TokenizerFamily::WordPiece,
        "t5" => TokenizerFamily::Unigram,
        "rwkv" => match tokenizer_parts(file, name) {
            Ok(Some(parts)) if parts.model == PartsModel::Characters => TokenizerFamily::Character,
            _ => TokenizerFamily::Custom,
        },
        _ => TokenizerFamily::Custom,
    }
}
