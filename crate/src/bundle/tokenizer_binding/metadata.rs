//! Reads the tokenizer of a GGUF file: one asset of all its metadata.

use std::collections::BTreeMap;

use super::{PortableTokenizerBinding, UNNAMED};
use crate::bundle::gguf_tokenizer::{Metadata, NONE, TEMPLATE, tokenizer_parts};
use crate::bundle::gguf_tokenizer_check::check_tokenizer;
use crate::error::Result;
use crate::formats::{GgufFile, GgufValue};
use crate::state::{AssetFormat, TokenizerFamily, TokenizerRecord};
use crate::tokenizer::PartsModel;

/// Name of the asset.
const ASSET: &str = "gguf:tokenizer";

impl PortableTokenizerBinding {
    /// Reads the tokenizer of a GGUF file, or of all parts of a split one; `None` if it has none. The asset `gguf:tokenizer` holds, for every
    /// key that begins with `tokenizer.ggml.`, ascending: length of the key (u64), the key, type (u32), the value's bytes as in the file.
    ///
    /// # Errors
    /// Metadata that contradict themselves, with the codes of crate/FORMATS.md, "Tokenizer of a GGUF"; `name` is the file's.
    pub fn from_gguf(file: &GgufFile, name: &str) -> Result<Option<Self>> {
        let metadata = Metadata(file);
        let mut entries: Vec<_> = metadata.entries().collect();
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        let model = metadata.model();
        if entries.is_empty() || model == Some(NONE) {
            return Ok(None);
        }
        check_tokenizer(file).map_err(|error| error.in_file(name))?;
        let mut asset = Vec::new();
        for (key, value) in entries {
            asset.extend((key.len() as u64).to_le_bytes());
            asset.extend_from_slice(key.as_bytes());
            asset.extend(value.kind().to_le_bytes());
            asset.extend_from_slice(value.bytes());
        }
        let record = TokenizerRecord {
            family: family(file, model.unwrap_or_default(), name),
            asset_format: AssetFormat::GgufMetadata,
            asset_version: String::new(),
            vocab_size: metadata.count(),
            add_bos: metadata.flag("add_bos_token"),
            add_eos: metadata.flag("add_eos_token"),
            bos: metadata.id("bos"),
            eos: metadata.ends(),
            pad: metadata.pad(),
            unk: metadata.id("unknown"),
        };
        // The key without a name holds the template that is used.
        let unnamed = file.get(TEMPLATE).and_then(GgufValue::text);
        let templates: BTreeMap<String, String> = metadata
            .named_templates()
            .chain(unnamed.map(|text| (UNNAMED, text)))
            .map(|(name, text)| (name.to_string(), text.to_string()))
            .collect();
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
