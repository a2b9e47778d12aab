//! A tokenizer as it is stored with a model: its assets byte for byte, its record, its chat templates, and their digests.

mod folder;
mod metadata;

use std::collections::BTreeMap;

use crate::error::{Refusal, Result, word};
use crate::formats::Digest;
use crate::state::{
    AssetAccount, TemplateAccount, TokenizerAccount, TokenizerRecord, template_digest,
    tokenizer_digest,
};

/// Name of the chat template without a name.
const UNNAMED: &str = "default";

/// A document of a tokenizer, byte for byte as it was read ([example](crate)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenizerAsset {
    /// Bytes of the document.
    pub bytes: Vec<u8>,
    /// SHA-256 of the bytes.
    pub sha256: Digest,
}

/// A tokenizer as plain data. It states only what the files state: a flag that they do not mention is absent ([example](crate)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortableTokenizerBinding {
    /// Family, format and version of the assets, size of the vocabulary, special ids and flags.
    pub record: TokenizerRecord,
    /// The assets by name: file names, or `gguf:tokenizer`.
    pub assets: BTreeMap<String, TokenizerAsset>,
    /// Exact texts of the chat templates by name; the unnamed one is `default`. They are never rendered here.
    pub templates: BTreeMap<String, String>,
    /// Digest of assets and record.
    pub tokenizer_digest: Digest,
    /// Digest of the templates, if there are any.
    pub template_digest: Option<Digest>,
    /// Digest of the templates of `tokenizer_config.json` if `chat_template.jinja` differs from them and is used.
    pub overruled_template_digest: Option<Digest>,
}

impl PortableTokenizerBinding {
    /// Digests of the tokenizer and of the chat templates.
    pub(crate) fn digests(&self) -> [Option<Digest>; 2] {
        [Some(self.tokenizer_digest), self.template_digest]
    }

    /// Creates the tokenizer of this record, with these assets and templates.
    ///
    /// # Errors
    /// `tokenizer.id.range` for a special id outside the vocabulary.
    pub fn new(
        record: TokenizerRecord,
        assets: BTreeMap<String, Vec<u8>>,
        templates: BTreeMap<String, String>,
    ) -> Result<Self> {
        let named = [
            ("bos", record.bos),
            ("pad", record.pad),
            ("unk", record.unk),
        ];
        let ids = named
            .into_iter()
            .filter_map(|(name, id)| Some((name, id?)))
            .chain(record.eos.iter().map(|&id| ("eos", id)));
        for (name, id) in ids {
            if u64::from(id) >= record.vocab_size {
                return Err(id_range(name, record.vocab_size, id).into());
            }
        }
        let (mut digests, mut hashed) = (BTreeMap::new(), BTreeMap::new());
        for (name, bytes) in assets {
            let sha256 = Digest::of(&bytes);
            digests.insert(name.clone(), sha256);
            hashed.insert(name, TokenizerAsset { bytes, sha256 });
        }
        let tokenizer_digest = tokenizer_digest(&digests, &record)?;
        let template_digest = (!templates.is_empty()).then(|| template_digest(&templates));
        Ok(Self {
            record,
            assets: hashed,
            templates,
            tokenizer_digest,
            template_digest,
            overruled_template_digest: None,
        })
    }

    /// Its account for a manifest.
    pub fn account(&self) -> TokenizerAccount {
        let assets = self.assets.iter().map(|(name, asset)| AssetAccount {
            name: name.clone(),
            bytes: asset.bytes.len() as u64,
            sha256: asset.sha256,
        });
        let templates = self.templates.iter().map(|(name, text)| TemplateAccount {
            name: name.clone(),
            sha256: Digest::of(text.as_bytes()),
        });
        TokenizerAccount {
            record: self.record.clone(),
            assets: assets.collect(),
            templates: templates.collect(),
        }
    }
}

/// Creates the refusal of a special id that is no token.
fn id_range(name: &str, vocab_size: u64, found: impl std::fmt::Display) -> Refusal {
    Refusal::new(word!("tokenizer.id.range"))
        .stage("bind")
        .subject(name)
        .expected(format!("less than {vocab_size}"))
        .found(found)
}
