//! The documents of a tokenizer among the files of a model.

use super::open::{Files, MAX_DOCUMENT_BYTES, document, find};
use super::refusal::{Warning, known_mark};
use crate::error::{Result, word};
use crate::tokenizer::Tokenizer;

/// Largest tokenizer.json.
const MAX_TOKENIZER_BYTES: u64 = 256 << 20;

/// Documents of a tokenizer that are read.
pub(super) const TOKENIZER_FILES: [&str; 4] = ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "special_tokens_map.json"];

/// Documents of a tokenizer for other programs, which go with the model.
pub(super) const CARRIED_FILES: [&str; 4] = ["tokenizer.model", "added_tokens.json", "vocab.json", "merges.txt"];

/// The tokenizer of `tokenizer.json` and the documents beside it, if there is one.
pub(super) fn hf_tokenizer(files: &Files) -> Result<Option<Tokenizer>> {
    let [json, settings, template, specials] = TOKENIZER_FILES;
    let Some(json) = document(files, json, MAX_TOKENIZER_BYTES)? else { return Ok(None) };
    let settings = document(files, settings, MAX_DOCUMENT_BYTES)?;
    let template = document(files, template, MAX_DOCUMENT_BYTES)?;
    let mut tokenizer = Tokenizer::from_hf(&json, settings.as_deref(), template.as_deref())?;
    if let Some(bytes) = document(files, specials, MAX_DOCUMENT_BYTES)? {
        tokenizer.add_asset(specials, bytes);
    }
    Ok(Some(tokenizer))
}

/// The documents of a tokenizer that `tokenizer` does not hold itself, by name, and the warnings of those that are pointers of Git LFS, which
/// are no documents.
pub(super) fn carried(files: &Files, tokenizer: Option<&Tokenizer>) -> Result<(Vec<(String, Vec<u8>)>, Vec<Warning>)> {
    let own: Vec<String> = tokenizer.map(|tokenizer| tokenizer.assets().into_iter().map(|(name, _)| name).collect()).unwrap_or_default();
    let (mut documents, mut warnings) = (Vec::new(), Vec::new());
    for name in TOKENIZER_FILES.into_iter().skip(1).chain(CARRIED_FILES).filter(|name| !own.iter().any(|held| held == name)) {
        let file = find(files, name).and_then(|at| files.get(at));
        if !name.ends_with(".json") && file.is_some_and(|file| known_mark(file.as_ref()) == Some("git-lfs-pointer")) {
            warnings.push(Warning::new(word!("tokenizer.file.pointer"), name));
        } else if let Some(bytes) = document(files, name, MAX_DOCUMENT_BYTES)? {
            documents.push((name.to_string(), bytes));
        }
    }
    Ok((documents, warnings))
}
