//! Converts text to token ids and back, over the `tokenizers` crate, and applies the model's chat template.

mod bpe;
mod budget;
mod characters;
mod chat;
mod class;
mod conversion;
mod coverage;
mod date;
mod document;
mod encode;
mod expression;
mod faults;
mod findings;
mod flaws;
mod folder;
mod frame;
mod jinja;
mod kind;
mod llama_cpp;
mod merges;
mod messages;
mod names;
mod notes;
mod pairs;
mod parts;
mod places;
mod pre;
mod replacement;
mod rows;
mod spaces;
mod split;
mod stated;
mod structure;
mod templates;
mod ties;
mod turn;
mod vocabulary;
mod words;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use tokenizers::{Decoder as _, Model as _};

use crate::error::{Error, Result};

pub use bpe::{BpeSettings, BpeTrainer};
pub use chat::Conversation;
pub(crate) use faults::read_json;
use faults::{bad, unencodable, unread};
pub(crate) use llama_cpp::{FILLS, GgufIds};
pub(crate) use messages::{MessageFault, REASONING, is_reserved, read_message, read_tools};
pub(crate) use names::{
    ADDED_FILE, CONFIG_FILE, READ_FILES, SPECIALS_FILE, TEMPLATE_FILE, TOKENIZER_FILE,
};
pub(crate) use notes::listed_briefly;
pub(crate) use pairs::SAVE_TOKENIZER;
pub(crate) use parts::TOKENIZER_JSON_SERVES;
pub(crate) use turn::next_message;

// For the packages of this workspace.
#[doc(hidden)]
pub use self::{
    chat::Rendered,
    date::Date,
    findings::{Findings, TextWarning},
    kind::TokenizerKind,
    names::MORE_TEMPLATES,
    parts::{PartsModel, TokenizerParts},
};

/// A vocabulary, the rules that apply it, and the files it came from. Clones share the vocabulary ([example](crate::generate)).
#[derive(Debug, Clone)]
pub struct Tokenizer {
    /// Model and rules but for the post-processor, which would trim the places of tokens; what it puts around a text is in `frame`.
    inner: Arc<tokenizers::Tokenizer>,
    coverage: coverage::Coverage,
    patterns: budget::Patterns,
    kind: TokenizerKind,
    /// Direct table of a vocabulary of single characters, which refuses characters that it lacks; `None` for other vocabularies.
    characters: Option<HashMap<char, u32>>,
    vocab_size: usize,
    /// Token that is decoded first, so that the token after it is decoded as in the middle of a text.
    anchor: Option<u32>,
    split: split::SplitRule,
    /// Name and text of each special token.
    specials: Vec<(String, String)>,
    unusual: Arc<stated::Unusual>,
    bos: Vec<u32>,
    frame: frame::Frame,
    eos: Vec<u32>,
    /// True if the settings do not name the token that ends a text: ids in other documents precede that of the class or the map.
    implied_end: bool,
    pad: Option<u32>,
    templates: templates::Templates,
    /// The main template and the one for tools, once they were used.
    compiled: [OnceLock<chat::Template>; 2],
    /// The token that ends a turn, once it was asked for.
    turn: OnceLock<Option<u32>>,
    /// Control tokens, once they were asked for.
    controls: OnceLock<Vec<(u32, String)>>,
    assets: Arc<Vec<(String, Vec<u8>)>>,
}

/// The added tokens of a `tokenizer.json`.
#[derive(serde::Deserialize)]
struct Added {
    #[serde(default)]
    added_tokens: Vec<Value>,
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
        // These documents are keys of a GGUF file.
        for place in &mut built.templates.empty {
            "tokenizer.chat_template".clone_into(place);
        }
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

    /// Creates the tokenizer of a new model from a `tokenizer.json` alone. No other file names the token that ends a text, so it is
    /// `<|endoftext|>` if that is one of its special tokens.
    ///
    /// # Errors
    /// As for [`Self::from_hf`].
    #[doc(hidden)]
    pub fn for_new_model(tokenizer_json: Vec<u8>) -> Result<Self> {
        let mut config = json!({"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": false});
        let mut tokens = read_json::<Added>(TOKENIZER_FILE, &tokenizer_json)?
            .added_tokens
            .into_iter();
        if !tokens.any(|token| token["special"] == true && token["content"] == class::END) {
            return Self::from_hf(&tokenizer_json, None, None);
        }
        config["eos_token"] = class::END.into();
        Self::from_documents(tokenizer_json, &config, None)
    }

    fn from_documents(
        tokenizer_json: Vec<u8>,
        config: &Value,
        template: Option<String>,
    ) -> Result<Self> {
        let config_text = serde_json::to_string_pretty(config).map_err(|e| bad(CONFIG_FILE, e))?;
        let mut documents = BTreeMap::from([
            (TOKENIZER_FILE.to_owned(), tokenizer_json),
            (CONFIG_FILE.to_owned(), config_text.into_bytes()),
        ]);
        // A list has the main template, too, and a file next to it would overrule all of it.
        if let Some(text) = template.filter(|_| config.get("chat_template").is_none()) {
            documents.insert(TEMPLATE_FILE.to_owned(), text.into_bytes());
        }
        Self::need_of(documents)
    }

    /// Returns the text of `ids`, including special tokens.
    ///
    /// # Errors
    /// `model.token-range` for an id beyond the vocabulary; `tokenizer.invalid`.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        self.decoded(ids, false)
    }

    /// Returns the text of `ids` without special tokens.
    ///
    /// # Errors
    /// As for [`Self::decode`].
    #[doc(hidden)]
    pub fn decode_plain(&self, ids: &[u32]) -> Result<String> {
        self.decoded(ids, true)
    }

    /// Decodes ids, an added token by its own text: `tokenizers` takes what its normalizer makes of the text, such as a space before it.
    fn decoded(&self, ids: &[u32], plain: bool) -> Result<String> {
        self.check(ids)?;
        if ids.is_empty() {
            return Ok(String::new());
        }
        let text = |id: &u32| match self.added_token(*id) {
            Some(token) => Some(token.content.clone()),
            None => self.inner.get_model().id_to_token(*id),
        };
        let added = self.inner.get_added_vocabulary();
        let kept = |text: &String| !plain || !added.is_special_token(text);
        let tokens: Vec<String> = ids.iter().filter_map(text).filter(kept).collect();
        match self.inner.get_decoder() {
            Some(decoder) => decoder.decode(tokens).map_err(|e| bad("decode", e)),
            None => Ok(tokens.join(" ")),
        }
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
        let mut places = ids.iter().enumerate();
        match places.find(|(_, id)| **id as usize >= self.vocab_size) {
            Some((position, id)) => Err(Error::TokenRange {
                id: i64::from(*id),
                position,
                vocab_size: self.vocab_size,
            }),
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
        for id in ids.iter().filter(|id| (**id as usize) < self.vocab_size) {
            if std::mem::take(&mut self.implied_end) {
                self.eos.clear();
            }
            if !self.eos.contains(id) {
                self.eos.push(*id);
            }
        }
    }

    /// Returns true if there is a template for [`Self::render_chat`].
    pub fn has_chat_template(&self) -> bool {
        self.templates.main.is_some()
    }

    /// Returns the files for an export, byte for byte as they were read: `tokenizer.json`, and the documents next to it that were read with it.
    #[doc(hidden)]
    pub fn assets(&self) -> Vec<(String, Vec<u8>)> {
        self.assets.to_vec()
    }
}
