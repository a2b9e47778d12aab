//! Finds the documents of a tokenizer among the files of a model.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::files::{Files, GENERATION, MAX_DOCUMENT_BYTES, document, find};
use crate::error::{Error, Refusal, Result, Warning, word};
use crate::formats::{Flaw, base_name, foreign, known_mark, not_json, read_document};
use crate::state::{CARRIED_FILES, TEMPLATES};
use crate::tokenizer::{
    ADDED_FILE, CONFIG_FILE, MORE_TEMPLATES, READ_FILES, SAVE_TOKENIZER, SPECIALS_FILE,
    TEMPLATE_FILE, TOKENIZER_FILE, Tokenizer, read_json,
};

/// Documents of a tokenizer that is described by a tokenizer.json.
pub(super) const TOKENIZER_FILES: [&str; 4] =
    [TOKENIZER_FILE, CONFIG_FILE, TEMPLATE_FILE, SPECIALS_FILE];

/// Lists the chat templates other than the main one: their names in a folder, and their places among the files. A list of files may have
/// their last names alone.
pub(super) fn more_templates(files: &Files) -> Vec<(String, usize)> {
    let names = files.iter().map(|file| base_name(file.name())).enumerate();
    let more = names.filter(|(_, name)| name.ends_with(".jinja") && *name != TEMPLATE_FILE);
    more.map(|(at, name)| (format!("{MORE_TEMPLATES}{name}"), at))
        .collect()
}

/// Reads the tokenizer of `tokenizer.json` and the documents next to it, or of `vocab.json` with `merges.txt`, if there is one. Other tokenizer
/// files by themselves are refused by name.
pub(super) fn hf_tokenizer(files: &Files) -> Result<Option<Tokenizer>> {
    let mut documents = BTreeMap::new();
    for name in READ_FILES {
        documents.extend(document(files, name)?.map(|bytes| (name.to_owned(), bytes)));
    }
    for (name, at) in more_templates(files) {
        documents.insert(name, read_document(&files[at], MAX_DOCUMENT_BYTES)?);
    }
    for name in [SPECIALS_FILE, GENERATION] {
        if let Some(bytes) = document(files, name)? {
            check_ends(name, &bytes)?;
        }
    }
    if let Some(found) = Tokenizer::from_folder(documents)? {
        return Ok(Some(found));
    }
    let mut others = CARRIED_FILES.into_iter();
    let alone =
        others.find(|name| ![ADDED_FILE, TEMPLATES].contains(name) && find(files, name).is_some());
    let refuse = |name: &str| {
        Refusal::new(word!("tokenizer.model.unsupported"))
            .stage("bind")
            .of(name)
            .expected("tokenizer.json, or vocab.json with merges.txt")
            .found(format!("{name} alone"))
            .hint(SAVE_TOKENIZER)
    };
    alone.map_or(Ok(None), |name| Err(refuse(name).into()))
}

/// Refuses a document that may be the only one to name the token that ends a text, and is no JSON object.
fn check_ends(name: &str, bytes: &[u8]) -> Result<()> {
    let read: Result<Map<String, Value>> = read_json(name, bytes);
    read.map(drop).map_err(|error| match error {
        Error::Tokenizer { what, reason } => Error::Tokenizer {
            what,
            reason: format!(
                "{reason}; the file may state which token ends a text: mend it or delete it"
            ),
        },
        other => other,
    })
}

/// Documents by name.
pub(super) type Documents = Vec<(String, Vec<u8>)>;

/// Finds what lies in the place of the document `name`. A list of tokens or merges may be empty.
fn flaw_of(name: &str, bytes: &[u8]) -> Option<Flaw> {
    let may_be_empty = !name.ends_with(".jinja");
    match name.ends_with(".json") {
        true => not_json(bytes),
        false => foreign(bytes).filter(|_| !(may_be_empty && bytes.trim_ascii().is_empty())),
    }
}

/// Creates a warning about the document `name`, in whose place there is something else that is not passed on.
pub(super) fn not_carried(name: &str, flaw: &Flaw) -> Warning {
    Warning::of_found(word!("tokenizer.file.other"), name, &flaw.found, flaw.hint)
}

/// Reads the documents of a tokenizer that `tokenizer` does not hold itself, by name, and warnings about files in their places that are no
/// documents.
pub(super) fn carried(
    files: &Files,
    tokenizer: Option<&Tokenizer>,
) -> Result<(Documents, Vec<Warning>)> {
    let own = tokenizer.into_iter().flat_map(Tokenizer::assets);
    let own: BTreeSet<String> = own.map(|(name, _)| name).collect();
    let (mut documents, mut warnings) = (Vec::new(), Vec::new());
    let named = TOKENIZER_FILES.into_iter().skip(1).chain(CARRIED_FILES);
    let named = named.filter_map(|name| Some((name.to_owned(), find(files, name)?)));
    for (name, at) in named.chain(more_templates(files)) {
        let file = &files[at];
        if own.contains(&name) {
            continue;
        }
        if !name.ends_with(".json") && known_mark(file) == Some("git-lfs-pointer") {
            warnings.push(Warning::new(word!("tokenizer.file.pointer"), &name));
            continue;
        }
        let bytes = read_document(file, MAX_DOCUMENT_BYTES)?;
        match flaw_of(&name, &bytes) {
            Some(flaw) => warnings.push(not_carried(&name, &flaw)),
            None => documents.push((name, bytes)),
        }
    }
    Ok((documents, warnings))
}
