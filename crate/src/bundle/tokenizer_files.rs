//! Finds the documents of a tokenizer among the files of a model.

use serde_json::{Map, Value};

use super::files::{Files, MAX_DOCUMENT_BYTES, document, find};
use crate::error::{Error, Refusal, Result, word};
use crate::formats::{Flaw, Warning, foreign, known_mark, not_json};
use crate::state::{CARRIED_FILES, TEMPLATES};
use crate::tokenizer::{HfDocuments, SAVE_TOKENIZER, Tokenizer, read_json};

/// Document that states how to generate, and with it the ids that end a text.
pub(super) const GENERATION: &str = "generation_config.json";

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
    for name in [specials, GENERATION] {
        read(name)?.map_or(Ok(()), |bytes| check_ends(name, &bytes))?;
    }
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

/// Refuses a document that may be the only one to name the token that ends a text, and is no JSON object.
fn check_ends(name: &str, bytes: &[u8]) -> Result<()> {
    let read: Result<Map<String, Value>> = read_json(name, bytes);
    read.map(drop).map_err(|error| match error {
        Error::Tokenizer { what, reason } => {
            Error::Tokenizer { what, reason: format!("{reason}; the file may state which token ends a text: mend it or delete it") }
        }
        other => other,
    })
}

/// Documents by name.
pub(super) type Documents = Vec<(String, Vec<u8>)>;

/// Returns the thing that lies in the place of the document `name`. A list of tokens or merges may be empty.
fn flaw_of(name: &str, bytes: &[u8]) -> Option<Flaw> {
    let may_be_empty = !name.ends_with(".jinja");
    match name.ends_with(".json") {
        true => not_json(bytes),
        false => foreign(bytes).filter(|_| !(may_be_empty && bytes.trim_ascii().is_empty())),
    }
}

/// Returns the documents of a tokenizer that `tokenizer` does not hold itself, by name, and warnings about files in their places that are no
/// documents.
pub(super) fn carried(files: &Files, tokenizer: Option<&Tokenizer>) -> Result<(Documents, Vec<Warning>)> {
    let own: Vec<String> = tokenizer.map(|tokenizer| tokenizer.assets().into_iter().map(|(name, _)| name).collect()).unwrap_or_default();
    let (mut documents, mut warnings) = (Vec::new(), Vec::new());
    for name in TOKENIZER_FILES.into_iter().skip(1).chain(CARRIED_FILES).filter(|name| !own.iter().any(|held| held == name)) {
        let file = find(files, name).and_then(|at| files.get(at));
        if !name.ends_with(".json") && file.is_some_and(|file| known_mark(file.as_ref()) == Some("git-lfs-pointer")) {
            warnings.push(Warning::new(word!("tokenizer.file.pointer"), name));
            continue;
        }
        let Some(bytes) = document(files, name, MAX_DOCUMENT_BYTES)? else { continue };
        match flaw_of(name, &bytes) {
            Some(flaw) => warnings.push(Warning::not_carried(name, &flaw)),
            None => documents.push((name.to_string(), bytes)),
        }
    }
    Ok((documents, warnings))
}
