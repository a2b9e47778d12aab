//! Reads a tokenizer from the files of a Hugging Face folder.

use serde_json::{Value, json};

use super::{CONFIG_FILE, TEMPLATE_FILE, TOKENIZER_FILE, Tokenizer, bad, pairs, read_json, templates};
use crate::error::{Error, Result};
use crate::formats::{Flaw, foreign};

/// The documents of a tokenizer that a folder contains.
#[derive(Debug, Default)]
pub(crate) struct HfDocuments {
    /// `tokenizer.json`.
    pub(crate) tokenizer: Option<Vec<u8>>,
    /// `tokenizer_config.json`.
    pub(crate) settings: Option<Vec<u8>>,
    /// `chat_template.jinja`.
    pub(crate) template: Option<Vec<u8>>,
    /// `special_tokens_map.json`.
    pub(crate) specials: Option<Vec<u8>>,
    /// `vocab.json`.
    pub(crate) vocab: Option<Vec<u8>>,
    /// `merges.txt`.
    pub(crate) merges: Option<Vec<u8>>,
    /// `added_tokens.json`.
    pub(crate) added: Option<Vec<u8>>,
    /// `model_type` of `config.json`.
    pub(crate) model_type: String,
}

impl Tokenizer {
    /// Creates a tokenizer from the files of a Hugging Face folder: `tokenizer.json`, and if present `tokenizer_config.json` and
    /// `chat_template.jinja`.
    ///
    /// # Errors
    /// `tokenizer.invalid` for files that cannot be read; `tokenizer.budget`.
    pub fn from_hf(tokenizer_json: &[u8], tokenizer_config: Option<&[u8]>, chat_template: Option<&[u8]>) -> Result<Self> {
        let config = object(tokenizer_config, CONFIG_FILE)?;
        Self::of_folder(tokenizer_json.to_vec(), &config, tokenizer_config, chat_template)
    }

    /// Creates a tokenizer from the documents of a folder: `tokenizer.json`, or one that is made from `vocab.json` and `merges.txt`.
    /// Returns `None` if neither is present.
    ///
    /// # Errors
    /// `tokenizer.invalid` for documents that cannot be read, and `tokenizer.model.unsupported` for a `vocab.json` of a class other than
    /// those of byte-level byte pair encoding.
    pub(crate) fn from_documents_of(documents: HfDocuments) -> Result<Option<Self>> {
        let HfDocuments { tokenizer, settings, template, specials, vocab, merges, added, model_type } = documents;
        let mut config = object(settings.as_deref(), CONFIG_FILE)?;
        let document = match (tokenizer, vocab, merges) {
            (Some(document), vocab, merges) => {
                if vocab.is_some() && merges.is_some() {
                    // A checkpoint of a model without a tokenizer.json contains the one that was made.
                    pairs::fill_in(&mut config, &object(specials.as_deref(), pairs::SPECIALS)?, &model_type);
                }
                document
            }
            (None, Some(vocab), Some(merges)) => {
                let specials = object(specials.as_deref(), pairs::SPECIALS)?;
                pairs::fill_in(&mut config, &specials, &model_type);
                pairs::Files { vocab: &vocab, merges: &merges, added: added.as_deref() }.tokenizer_json(&config, &specials, &model_type)?
            }
            _ => return Ok(None),
        };
        let mut made = Self::of_folder(document, &config, settings.as_deref(), template.as_deref())?;
        if let Some(bytes) = specials {
            made.add_asset(pairs::SPECIALS, bytes);
        }
        Ok(Some(made))
    }

    fn of_folder(document: Vec<u8>, config: &Value, settings: Option<&[u8]>, chat_template: Option<&[u8]>) -> Result<Self> {
        let mut assets = vec![(TOKENIZER_FILE.to_owned(), document)];
        assets.extend(settings.map(|bytes| (CONFIG_FILE.to_owned(), bytes.to_vec())));
        let template = match chat_template {
            Some(bytes) => {
                assets.push((TEMPLATE_FILE.to_owned(), bytes.to_vec()));
                Some(template_text(bytes)?.to_owned())
            }
            None => templates::template_of(config),
        };
        Self::assemble(config, template, assets)
    }
}

/// Returns the text of a chat template. Refuses a file that is something else: every text would be rendered with it.
fn template_text(bytes: &[u8]) -> Result<&str> {
    if let Some(Flaw { found, hint }) = foreign(bytes) {
        let hint = format!("{hint}, or delete it so that the template of tokenizer_config.json counts");
        return Err(Error::Tokenizer { what: TEMPLATE_FILE.to_owned(), reason: format!("{found}, not a template: {hint}") });
    }
    std::str::from_utf8(bytes).map_err(|e| bad(TEMPLATE_FILE, e))
}

/// Parses the JSON of the document `name`; an empty object if it is absent.
fn object(bytes: Option<&[u8]>, name: &str) -> Result<Value> {
    let Some(bytes) = bytes else { return Ok(json!({})) };
    let value: Value = read_json(name, bytes)?;
    if value.is_object() { Ok(value) } else { Err(bad(name, "expected an object of JSON")) }
}
