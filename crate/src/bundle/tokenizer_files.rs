//! Finds the documents of a tokenizer among the files of a model.

use serde_json::Value;

use super::files::{Files, MAX_DOCUMENT_BYTES, document, find};
use crate::error::{Refusal, Result, word};
use crate::formats::{Warning, known_mark};
use crate::state::{CARRIED_FILES, TEMPLATES};
use crate::tokenizer::{HfDocuments, SAVE_TOKENIZER, Tokenizer};

/// Maximum size of tokenizer.json.
const MAX_TOKENIZER_BYTES: u64 = 256 << 20;

/// Documents of a tokenizer that are read.
pub(super) const TOKENIZER_FILES: [&str; 4] = ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "special_tokens_map.json"];

/// Reads the tokenizer of `tokenizer.json` and the documents next to it, or of `vocab.json` with `merges.txt`, if there is one. Other tokenizer
/// files by themselves are refused by name.
pub(super) fn hf_tokenizer(files: &Files) -> Result<Option<Tokenizer>> {
    let [json, settings, template, specials] = TOKENIZER_FILES;
    let [_, added, vocab, merges, ..] = CARRIED_FILES;
    let read = |name: &str| document(files, name, MAX_DOCUMENT_BYTES);
    let config: Value = read("config.json")?.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    let documents = HfDocuments {
        tokenizer: document(files, json, MAX_TOKENIZER_BYTES)?,
        settings: read(settings)?,
        template: read(template)?,
        specials: read(specials)?,
        vocab: read(vocab)?,
        merges: read(merges)?,
        added: read(added)?,
        model_type: config["model_type"].as_str().unwrap_or_default().to_string(),
    };
    let found = Tokenizer::from_documents_of(documents)?;
    let serves = |name: &&str| ![added, TEMPLATES].contains(name);
    let alone = CARRIED_FILES.into_iter().filter(serves).find(|name| find(files, name).is_some());
    match alone.filter(|_| found.is_none()) {
        Some(name) => {
            let refusal = Refusal::new(word!("tokenizer.model.unsupported")).stage("bind").of(name).found(format!("{name} alone"));
            Err(refusal.expected("tokenizer.json, or vocab.json with merges.txt").hint(SAVE_TOKENIZER).into())
        }
        None => Ok(found),
    }
}

/// Documents by name.
pub(super) type Documents = Vec<(String, Vec<u8>)>;

/// Returns the documents of a tokenizer that `tokenizer` does not hold itself, by name, and warnings about pointers of Git LFS, which are no
/// documents.
pub(super) fn carried(files: &Files, tokenizer: Option<&Tokenizer>) -> Result<(Documents, Vec<Warning>)> {
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
