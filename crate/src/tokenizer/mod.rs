//! Text ⇄ token ids, over the `tokenizers` crate, and the model's chat template.

mod budget;
mod characters;
mod chat;
mod date;
mod document;
mod encode;
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
use std::sync::Arc;

use serde_json::{Value, json};

use crate::error::{Error, Result, shown};

pub use chat::{Conversation, Rendered};
pub use date::Date;
pub(crate) use folder::HfDocuments;
pub use kind::TokenizerKind;
pub(crate) use pairs::SAVE_TOKENIZER;
pub(crate) use parts::TOKENIZER_JSON_SERVES;
pub use parts::{PartsModel, TokenizerParts};
pub(crate) use turn::next_message;

const TOKENIZER_FILE: &str = "tokenizer.json";
const CONFIG_FILE: &str = "tokenizer_config.json";
const TEMPLATE_FILE: &str = "chat_template.jinja";

/// Names of the special tokens in `tokenizer_config.json`, as templates see them.
const SPECIAL_KEYS: [&str; 4] = ["bos_token", "eos_token", "unk_token", "pad_token"];

/// A vocabulary, the rules that apply it, and the files it came from. Clones share the vocabulary.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    inner: Arc<tokenizers::Tokenizer>,
    patterns: budget::Patterns,
    kind: TokenizerKind,
    /// For vocabularies of characters only: a direct table, which refuses characters that it lacks.
    characters: Option<HashMap<char, u32>>,
    vocab_size: usize,
    /// A token that is decoded first, so that what follows it is decoded as in the middle of a text.
    anchor: Option<u32>,
    split: split::SplitRule,
    /// Key of [`SPECIAL_KEYS`] and text.
    specials: Vec<(&'static str, String)>,
    bos: Vec<u32>,
    prefix: Vec<u32>,
    /// The tokens that `tokenizer_config.json` puts around a text in place of the post-processor.
    frame: Option<frame::Frame>,
    eos: Vec<u32>,
    pad: Option<u32>,
    template: Option<String>,
    /// Templates besides the unnamed one.
    named: Vec<(String, String)>,
    assets: Arc<Vec<(String, Vec<u8>)>>,
}

/// The name of the template for conversations with tools.
const TOOL_TEMPLATE: &str = "tool_use";

fn bad(what: &str, reason: impl ToString) -> Error {
    // Messages of the libraries may quote the file.
    Error::Tokenizer { what: what.to_owned(), reason: shown(&reason.to_string()) }
}

fn unencodable(reason: impl ToString) -> Error {
    Error::TextNotEncodable { reason: reason.to_string() }
}

impl Tokenizer {
    /// From the vocabulary of a GGUF file; the files of a Hugging Face folder are made from it.
    pub fn from_parts(mut parts: TokenizerParts) -> Result<Self> {
        let (document, config) = (parts.tokenizer_json()?, parts.tokenizer_config());
        let (template, eos) = (parts.chat_template.take(), std::mem::take(&mut parts.eos));
        // A large vocabulary is not to lie here twice while it is read.
        drop(parts);
        let mut built = Self::from_documents(document, &config, template)?;
        built.add_eos(&eos);
        Ok(built)
    }

    /// One token for each distinct character of `text`, ids in the order of code points.
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

    /// `assets` begin with `tokenizer.json`.
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
            assets: Arc::new(assets),
        })
    }

    /// Text of `ids`, special tokens included.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        self.check(ids)?;
        self.inner.decode(ids, false).map_err(|e| bad("decode", e))
    }

    /// Text of `ids`, special tokens left out.
    pub fn decode_plain(&self, ids: &[u32]) -> Result<String> {
        self.check(ids)?;
        self.inner.decode(ids, true).map_err(|e| bad("decode", e))
    }

    /// The text that `id` adds in the middle of a text; the replacement character stands for parts of a character.
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

    /// Highest id in use + 1.
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// The kind of vocabulary.
    pub fn kind(&self) -> TokenizerKind {
        self.kind
    }

    /// Ids that begin a text; at most one.
    pub fn bos(&self) -> &[u32] {
        &self.bos
    }

    /// Ids that end a text or a turn.
    pub fn eos(&self) -> &[u32] {
        &self.eos
    }

    /// The id that pads short sequences, if the model has one.
    pub fn pad(&self) -> Option<u32> {
        self.pad
    }

    /// Adds ids that end a text, for example those of `generation_config.json`.
    pub fn add_eos(&mut self, ids: &[u32]) {
        for id in ids {
            if !self.eos.contains(id) && (*id as usize) < self.vocab_size {
                self.eos.push(*id);
            }
        }
    }

    /// Whether there is a template for [`Self::render_chat`].
    pub fn has_chat_template(&self) -> bool {
        self.template.is_some()
    }

    /// Whether the chat template writes the day.
    pub fn asks_for_date(&self) -> bool {
        let tools = self.named.iter().filter(|(name, _)| name == TOOL_TEMPLATE).map(|(_, template)| template.as_str());
        self.chat_template().into_iter().chain(tools).any(|template| template.contains("strftime_now"))
    }

    /// The chat template's text.
    pub fn chat_template(&self) -> Option<&str> {
        self.template.as_deref()
    }

    /// Chat templates by name, ascending, besides the one that [`Self::chat_template`] gives.
    pub fn named_templates(&self) -> &[(String, String)] {
        &self.named
    }

    /// The template of a conversation: with tools the one that is named `tool_use`, if there is one, as transformers has it.
    fn template_for(&self, conversation: &Conversation) -> Option<&str> {
        let tools = conversation.names.get("tools").is_some_and(|tools| !tools.is_null());
        let named = self.named.iter().find(|(name, _)| tools && name == TOOL_TEMPLATE).map(|(_, template)| template.as_str());
        self.template.as_deref().map(|template| named.unwrap_or(template))
    }

    /// The conversation as the model was trained to read it. `add_generation_prompt` opens the assistant's turn at the end.
    pub fn render_chat(&self, conversation: &Conversation, add_generation_prompt: bool) -> Result<Rendered> {
        let absent = || Error::Template { reason: "the model has no chat template".to_owned() };
        let source = self.template_for(conversation).ok_or_else(absent)?;
        chat::render(source, conversation, add_generation_prompt, &self.specials)
    }

    /// Files for an export: `tokenizer.json`, `tokenizer_config.json`, `chat_template.jinja`, byte for byte as they were read.
    pub fn assets(&self) -> Vec<(String, Vec<u8>)> {
        self.assets.to_vec()
    }

    /// Adds a file that goes with the others and says nothing that these do not.
    pub fn add_asset(&mut self, name: &str, bytes: Vec<u8>) {
        Arc::make_mut(&mut self.assets).push((name.to_owned(), bytes));
    }
}
