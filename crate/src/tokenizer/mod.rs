//! Converts text to token ids and back, over the `tokenizers` crate, and applies the model's chat template.

mod budget;
mod characters;
mod chat;
mod conversion;
mod date;
mod document;
mod encode;
mod faults;
mod folder;
mod frame;
mod jinja;
mod kind;
mod pairs;
mod parts;
mod pre;
mod rows;
mod split;
mod templates;
mod turn;
mod vocabulary;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use crate::error::{Error, Result};

pub use chat::Conversation;
pub(crate) use faults::read_json;
use faults::{bad, unencodable, unread};
pub(crate) use folder::HfDocuments;
pub(crate) use pairs::SAVE_TOKENIZER;
pub(crate) use parts::TOKENIZER_JSON_SERVES;
pub(crate) use turn::next_message;

// For the packages of this workspace.
#[doc(hidden)]
pub use self::{
    chat::Rendered,
    date::Date,
    kind::TokenizerKind,
    parts::{PartsModel, TokenizerParts},
};

const TOKENIZER_FILE: &str = "tokenizer.json";
const CONFIG_FILE: &str = "tokenizer_config.json";
const TEMPLATE_FILE: &str = "chat_template.jinja";

/// Keys of the special tokens in `tokenizer_config.json`, which are also their names in templates.
const SPECIAL_KEYS: [&str; 4] = ["bos_token", "eos_token", "unk_token", "pad_token"];

/// A vocabulary, the rules that apply it, and the files it came from. Clones share the vocabulary.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    inner: Arc<tokenizers::Tokenizer>,
    patterns: budget::Patterns,
    kind: TokenizerKind,
    /// Direct table of a vocabulary of single characters, which refuses characters that it lacks; `None` for other vocabularies.
    characters: Option<HashMap<char, u32>>,
    vocab_size: usize,
    /// Token that is decoded first, so that the token after it is decoded as in the middle of a text.
    anchor: Option<u32>,
    split: split::SplitRule,
    /// Key in [`SPECIAL_KEYS`] and text of each special token.
    specials: Vec<(&'static str, String)>,
    bos: Vec<u32>,
    prefix: Vec<u32>,
    /// Tokens that `tokenizer_config.json` puts around a text in place of the post-processor.
    frame: Option<frame::Frame>,
    eos: Vec<u32>,
    pad: Option<u32>,
    template: Option<String>,
    /// Chat templates other than the unnamed one.
    named: Vec<(String, String)>,
    /// The main template and the one for tools, once they were used.
    compiled: [OnceLock<chat::Template>; 2],
    assets: Arc<Vec<(String, Vec<u8>)>>,
}

impl Tokenizer {
    /// Creates a tokenizer from the vocabulary of a GGUF file, and makes the files of a Hugging Face folder from it.
    ///
    /// # Errors
    /// `tokenizer.invalid`; `tokenizer.model.unsupported` for a rule that is refused; `tokenizer.budget`.
    #[doc(hidden)]
    pub fn from_parts(mut parts: TokenizerParts) -> Result<Self> {
        let (document, config) = (parts.tokenizer_json()?, parts.tokenizer_config());
        let (template, eos) = (parts.chat_template.take(), std::mem::take(&mut parts.eos));
        // A large vocabulary must not be in memory twice while it is read.
        drop(parts);
        let mut built = Self::from_documents(document, &config, template)?;
        built.add_eos(&eos);
        Ok(built)
    }

    /// Creates a tokenizer with one token for each distinct character of `text`, with ids in the order of code points.
    ///
    /// # Errors
    /// `data.too-short` for an empty text.
    pub fn characters(text: &str) -> Result<Self> {
        let document = characters::parts(text)?.tokenizer_json()?;
        let config = json!({"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": false});
        Self::from_documents(document, &config, None)
    }

    fn from_documents(tokenizer_json: Vec<u8>, config: &Value, template: Option<String>) -> Result<Self> {
        let config_text = serde_json::to_string_pretty(config).map_err(|e| bad(CONFIG_FILE, e))?;
        let mut assets = vec![(TOKENIZER_FILE.to_owned(), tokenizer_json), (CONFIG_FILE.to_owned(), config_text.into_bytes())];
        if let Some(text) = &template {
            assets.push((TEMPLATE_FILE.to_owned(), text.clone().into_bytes()));
        }
        Self::assemble(config, template, assets)
    }

    /// Builds the tokenizer; `assets` begin with `tokenizer.json`.
    fn assemble(config: &Value, template: Option<String>, assets: Vec<(String, Vec<u8>)>) -> Result<Self> {
        let document = assets.first().map_or(&[][..], |(_, bytes)| bytes.as_slice());
        let patterns = budget::Patterns::of(document)?;
        let mut inner = document::read(document)?;
        // The file may contain the truncation and padding of its last training run; a text is always encoded whole.
        inner.with_truncation(None).map_err(|e| bad(TOKENIZER_FILE, e))?;
        inner.with_padding(None);
        let vocab = inner.get_vocab(true);
        let last = vocab.values().max().ok_or_else(|| bad(TOKENIZER_FILE, "the vocabulary is empty"))?;
        let vocab_size = *last as usize + 1;
        let characters = characters::table(&inner, document, &vocab);
        let kind = match inner.get_model() {
            _ if characters.is_some() => TokenizerKind::Characters,
            tokenizers::ModelWrapper::BPE(_) => TokenizerKind::BytePairEncoding,
            tokenizers::ModelWrapper::Unigram(_) => TokenizerKind::Unigram,
            tokenizers::ModelWrapper::WordPiece(_) => TokenizerKind::WordPiece,
            tokenizers::ModelWrapper::WordLevel(_) => TokenizerKind::WordLevel,
        };
        let specials: Vec<(&'static str, String)> =
            SPECIAL_KEYS.iter().filter_map(|&key| templates::special_text(config.get(key)?).map(|text| (key, text))).collect();
        let ids =
            |key: &str| specials.iter().filter(|(k, _)| *k == key).filter_map(|(_, text)| inner.token_to_id(text)).collect::<Vec<_>>();
        let (bos, eos, pad) = (ids("bos_token"), ids("eos_token"), ids("pad_token").first().copied());
        let split = if characters.is_some() { split::SplitRule::Whole } else { split::SplitRule::probe(&inner, &vocab) };
        let anchor = ["a", "e", "0"].iter().find_map(|text| inner.encode_fast(*text, false).ok()?.get_ids().last().copied());
        let wrapped = inner.encode_fast("", true).map_err(|e| bad(TOKENIZER_FILE, e))?;
        let frame = frame::Frame::stated(config, wrapped.get_ids(), &bos, &eos);
        let found = || wrapped.get_ids().iter().copied().take_while(|id| bos.contains(id)).collect();
        let prefix = frame.as_ref().map_or_else(found, |frame| frame.before.clone());
        Ok(Self {
            inner: Arc::new(inner),
            patterns,
            kind,
            characters,
            vocab_size,
            anchor,
            split,
            specials,
            bos,
            prefix,
            frame,
            eos,
            pad,
            template,
            named: templates::named_of(config),
            compiled: Default::default(),
            assets: Arc::new(assets),
        })
    }

    /// Returns the text of `ids`, including special tokens.
    ///
    /// # Errors
    /// `model.token-range` for an id beyond the vocabulary; `tokenizer.invalid`.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        self.check(ids)?;
        self.inner.decode(ids, false).map_err(|e| bad("decode", e))
    }

    /// Returns the text of `ids` without special tokens.
    ///
    /// # Errors
    /// As for [`Self::decode`].
    #[doc(hidden)]
    pub fn decode_plain(&self, ids: &[u32]) -> Result<String> {
        self.check(ids)?;
        self.inner.decode(ids, true).map_err(|e| bad("decode", e))
    }

    /// Returns the text that `id` adds in the middle of a text; the replacement character represents parts of a character.
    ///
    /// # Errors
    /// As for [`Self::decode`].
    #[doc(hidden)]
    pub fn token_text(&self, id: u32) -> Result<String> {
        if let Some(anchor) = self.anchor {
            let (before, both) = (self.decode(&[anchor])?, self.decode(&[anchor, id])?);
            if let Some(added) = both.strip_prefix(before.as_str()) {
                return Ok(added.to_owned());
            }
        }
        self.decode(&[id])
    }

    fn check(&self, ids: &[u32]) -> Result<()> {
        match ids.iter().position(|&id| id as usize >= self.vocab_size) {
            Some(position) => {
                Err(Error::TokenRange { id: i64::from(ids.get(position).copied().unwrap_or(0)), position, vocab_size: self.vocab_size })
            }
            None => Ok(()),
        }
    }

    /// Returns the highest id in use + 1.
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// Returns the kind of vocabulary.
    #[doc(hidden)]
    pub fn kind(&self) -> TokenizerKind {
        self.kind
    }

    /// Returns the ids that begin a text; at most one.
    pub fn bos(&self) -> &[u32] {
        &self.bos
    }

    /// Returns the ids that end a text or a turn.
    pub fn eos(&self) -> &[u32] {
        &self.eos
    }

    /// Returns the id that pads short sequences, if the model has one.
    #[doc(hidden)]
    pub fn pad(&self) -> Option<u32> {
        self.pad
    }

    /// Adds ids that end a text, for example those of `generation_config.json`.
    #[doc(hidden)]
    pub fn add_eos(&mut self, ids: &[u32]) {
        for id in ids {
            if !self.eos.contains(id) && (*id as usize) < self.vocab_size {
                self.eos.push(*id);
            }
        }
    }

    /// Returns true if there is a template for [`Self::render_chat`].
    pub fn has_chat_template(&self) -> bool {
        self.template.is_some()
    }

    /// Returns the files for an export: `tokenizer.json`, `tokenizer_config.json`, `chat_template.jinja`, byte for byte as they were read.
    #[doc(hidden)]
    pub fn assets(&self) -> Vec<(String, Vec<u8>)> {
        self.assets.to_vec()
    }

    /// Adds a file that accompanies the others without changing their meaning.
    pub(crate) fn add_asset(&mut self, name: &str, bytes: Vec<u8>) {
        Arc::make_mut(&mut self.assets).push((name.to_owned(), bytes));
    }
}
