//! Makes the tokenizer of a Hugging Face folder out of all its files. A vocabulary of a GGUF file becomes such files first.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use tokenizers::{ModelWrapper, PostProcessorWrapper};

use super::class::{BERT, TokenizerClass};
use super::coverage::Coverage;
use super::frame::Frame;
use super::names::{
    ADDED_FILE, CONFIG_FILE, MERGES, MODEL_FILE, MORE_TEMPLATES, SPECIALS_FILE, TEMPLATE_FILE,
    TOKENIZER_FILE, VOCAB,
};
use super::stated::{Stated, special_text};
use super::templates::Templates;
use super::{
    Tokenizer, TokenizerKind, bad, budget, characters, document, pairs, read_json, spaces, split,
};
use crate::error::Result;

/// Documents that accompany the tokenizer to an export, in this order; `tokenizer.json` comes first, whether it was read or made.
const ASSETS: [&str; 3] = [CONFIG_FILE, TEMPLATE_FILE, SPECIALS_FILE];

impl Tokenizer {
    /// Creates a tokenizer from files of a Hugging Face folder: `tokenizer.json`, and if present `tokenizer_config.json` and
    /// `chat_template.jinja`.
    ///
    /// # Errors
    /// `tokenizer.invalid` for files that cannot be read; `tokenizer.budget`.
    pub fn from_hf(
        tokenizer_json: &[u8],
        tokenizer_config: Option<&[u8]>,
        chat_template: Option<&[u8]>,
    ) -> Result<Self> {
        let files = [
            (TOKENIZER_FILE, Some(tokenizer_json)),
            (CONFIG_FILE, tokenizer_config),
            (TEMPLATE_FILE, chat_template),
        ];
        let given = files.into_iter();
        let given = given.filter_map(|(name, bytes)| Some((name.to_owned(), bytes?.to_vec())));
        Self::need_of(given.collect())
    }

    /// Creates the tokenizer of documents among which there is a `tokenizer.json`.
    pub(super) fn need_of(documents: BTreeMap<String, Vec<u8>>) -> Result<Self> {
        Self::from_folder(documents)?.ok_or_else(|| bad(TOKENIZER_FILE, "there is none"))
    }

    /// Creates a tokenizer from the documents of a folder by name: all that `AutoTokenizer` of transformers reads, with `config.json`, which
    /// may name the class. Its vocabulary is that of `tokenizer.json`, or of `vocab.json` and `merges.txt`. Returns `None` without either.
    ///
    /// # Errors
    /// `tokenizer.invalid` for documents that cannot be read; `tokenizer.budget`; `tokenizer.model.unsupported` for a `vocab.json` of a class
    /// other than those of byte-level byte pair encoding.
    #[doc(hidden)]
    pub fn from_folder(mut documents: BTreeMap<String, Vec<u8>>) -> Result<Option<Self>> {
        let object = |name: &str| -> Result<Value> {
            let Some(bytes) = documents.get(name) else {
                return Ok(json!({}));
            };
            match read_json(name, bytes)? {
                value @ Value::Object(_) => Ok(value),
                _ => Err(bad(name, "expected an object of JSON")),
            }
        };
        let (settings, map) = (object(CONFIG_FILE)?, object(SPECIALS_FILE)?);
        let beside = match Stated::overrules(&settings) {
            true => Value::Null,
            false => object(ADDED_FILE)?,
        };
        // Its faults are reported where the model is read.
        let config = object(MODEL_FILE).unwrap_or_default();
        let class = TokenizerClass::of(&settings, &config);
        let written = documents.remove(TOKENIZER_FILE);
        let vocabulary = match (written, documents.get(VOCAB), documents.get(MERGES)) {
            (Some(document), ..) => document,
            (None, Some(vocab), Some(merges)) => {
                let stated = Stated::of(&settings, &map, &beside, class, None)?;
                pairs::Files {
                    vocab,
                    merges,
                    settings: &settings,
                    config: &config,
                }
                .tokenizer_json(&stated)?
            }
            _ => return Ok(None),
        };
        let (patterns, parts) = budget::Patterns::of(&vocabulary)?;
        let mut inner = document::read(&vocabulary, &parts)?;
        let padding = inner.get_padding().map(|padding| padding.pad_token.clone());
        disable_settings_of_training(&mut inner)?;
        let ruling = class.filter(|class| class.rules(&vocabulary));
        spaces::settle(&mut inner, ruling, &settings)?;
        if ruling == Some(&BERT) {
            spaces::settle_bert(&mut inner, &settings)?;
        }
        inner.set_encode_special_tokens(settings["split_special_tokens"] == true);
        let mut stated = Stated::of(&settings, &map, &beside, ruling, padding.as_deref())?;
        if class.is_some() && ruling.is_none() {
            stated.keep_flags();
        }
        let mut unusual = stated.add_to(&mut inner)?;
        if settings["auto_map"].get("AutoTokenizer").is_some() {
            unusual.code.push(CONFIG_FILE.to_owned());
        }
        let templates = Templates::of(&settings, &documents)?;
        let vocab = inner.get_vocab(true);
        let last = vocab.values().max();
        let last = last.ok_or_else(|| bad(TOKENIZER_FILE, "the vocabulary is empty"))?;
        let vocab_size = *last as usize + 1;
        let characters = characters::table(&inner, &vocabulary, &vocab);
        let kind = match inner.get_model() {
            _ if characters.is_some() => TokenizerKind::Characters,
            ModelWrapper::BPE(_) => TokenizerKind::BytePairEncoding,
            ModelWrapper::Unigram(_) => TokenizerKind::Unigram,
            ModelWrapper::WordPiece(_) => TokenizerKind::WordPiece,
            ModelWrapper::WordLevel(_) => TokenizerKind::WordLevel,
        };
        // A token that only the class names is one that the model knows if the vocabulary has it.
        let known = |id: &u32| !unusual.implied.contains_key(id);
        let id = |name: &str| inner.token_to_id(stated.text(name)?).filter(known);
        let (bos, pad) = (Vec::from_iter(id("bos_token")), id("pad_token"));
        let end = special_text(&settings["eos_token"]).and_then(|text| inner.token_to_id(&text));
        let eos = Vec::from_iter(end.or_else(|| id("eos_token")));
        let split = match characters {
            Some(_) => split::SplitRule::Whole,
            None => split::SplitRule::probe(&inner, &vocab),
        };
        let last_id = |text: &str| {
            inner
                .encode_fast(text, false)
                .ok()?
                .get_ids()
                .last()
                .copied()
        };
        let anchor = ["a", "e", "0"].into_iter().find_map(last_id);
        let frame = Frame::of(&inner, class, &settings, &bos, &eos)?;
        inner.with_post_processor(None::<PostProcessorWrapper>);
        let coverage = Coverage::of(&inner, &vocabulary, &vocab)?;
        let own = ASSETS
            .into_iter()
            .filter_map(|name| documents.remove_entry(name));
        let mut assets = vec![(TOKENIZER_FILE.to_owned(), vocabulary)];
        assets.extend(own);
        documents.retain(|name, _| name.starts_with(MORE_TEMPLATES));
        assets.extend(documents);
        Ok(Some(Self {
            inner: Arc::new(inner),
            coverage,
            patterns,
            kind,
            characters,
            vocab_size,
            anchor,
            split,
            specials: stated.names(),
            unusual: Arc::new(unusual),
            bos,
            frame,
            eos,
            implied_end: end.is_none(),
            pad,
            templates,
            compiled: Default::default(),
            turn: OnceLock::new(),
            controls: OnceLock::new(),
            assets: Arc::new(assets),
        }))
    }
}

/// Turns off what the file keeps of its last training run: a text is always encoded whole, alone, and to the same ids.
fn disable_settings_of_training(inner: &mut tokenizers::Tokenizer) -> Result<()> {
    inner
        .with_truncation(None)
        .map_err(|error| bad(TOKENIZER_FILE, error))?;
    inner.with_padding(None);
    if let ModelWrapper::BPE(model) = inner.get_model()
        && model.dropout.is_some()
    {
        let mut model = model.clone();
        model.dropout = None;
        inner.with_model(model);
    }
    Ok(())
}
