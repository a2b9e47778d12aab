//! Limits the cost of the patterns in a `tokenizer.json`. The engine gives up on a text after a million backtracking steps, and the
//! `tokenizers` crate then silently stops splitting: the ids would be wrong. Therefore patterns that are not known to be harmless are tried
//! on each text first.

use std::sync::Arc;

use fancy_regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use super::parts::{LLAMA_BPE, QWEN2};
use super::{TOKENIZER_FILE, bad, unread};
use crate::error::{Error, Refusal, Result, word};

/// Maximum total size of a document's patterns in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// The parts of a `tokenizer.json` that contain patterns; the vocabulary is skipped.
#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    #[serde(default)]
    decoder: Value,
}

/// Patterns that must be tried on a text before they split it.
#[derive(Debug, Clone)]
pub(super) struct Patterns(Arc<Vec<Regex>>);

impl Patterns {
    /// Collects the patterns of a document. Refuses more than 1 MiB of them.
    pub(super) fn of(document: &[u8]) -> Result<Self> {
        let Document { normalizer, pre_tokenizer, decoder } =
            serde_json::from_slice(document).map_err(|e| unread(TOKENIZER_FILE, document, e))?;
        let mut found = Vec::new();
        for part in [&normalizer, &pre_tokenizer, &decoder] {
            collect(part, &mut found);
        }
        let bytes: usize = found.iter().map(|(_, text)| text.len()).sum();
        if bytes > MAX_PATTERN_BYTES {
            return Err(over(format!("at most {MAX_PATTERN_BYTES} bytes of patterns"), bytes));
        }
        let foreign = found.into_iter().filter(|(regex, text)| *regex && ![LLAMA_BPE, QWEN2].contains(text)).map(|(_, text)| text);
        let compiled = foreign.map(|text| Regex::new(text).map_err(|e| bad(TOKENIZER_FILE, e)));
        Ok(Self(Arc::new(compiled.collect::<Result<_>>()?)))
    }

    /// Refuses a text on which a pattern needs more backtracking steps than the engine allows.
    pub(super) fn check(&self, text: &str) -> Result<()> {
        let stopped = self.0.iter().find_map(|pattern| pattern.find_iter(text).find_map(std::result::Result::err));
        stopped.map_or(Ok(()), |error| Err(over("a pattern that matches within the engine's limit".into(), error)))
    }
}

fn over(expected: String, found: impl std::fmt::Display) -> Error {
    Refusal::new(word!("tokenizer.budget")).stage("bind").of(TOKENIZER_FILE).expected(expected).found(found).into()
}

/// Collects every `{"Regex": text}` (true) and `{"String": text}` (false) below `value`.
fn collect<'a>(value: &'a Value, out: &mut Vec<(bool, &'a str)>) {
    match value {
        Value::Object(fields) => {
            for (key, inner) in fields {
                match (key.as_str(), inner) {
                    ("Regex", Value::String(text)) => out.push((true, text)),
                    ("String", Value::String(text)) => out.push((false, text)),
                    _ => collect(inner, out),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, out)),
        _ => {}
    }
}
