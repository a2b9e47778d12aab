//! Limits the cost of the patterns in a `tokenizer.json`. The engine gives up on a text after a million backtracking steps, and the
//! `tokenizers` crate then silently stops splitting: the ids would be wrong. Therefore patterns that are not known to be harmless are tried
//! on each text first.

use std::sync::Arc;

use fancy_regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use super::expression::{Unsaid, rewritten};
use super::flaws;
use super::merges::Model;
use super::pre::{GPT2, LLAMA_BPE, QWEN2};
use super::{TOKENIZER_FILE, unread};
use crate::error::{Error, Refusal, Result, word};

/// Maximum total size of a document's patterns in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// The parts of a `tokenizer.json` that contain patterns or may have flaws; the vocabulary is skipped.
#[derive(Debug, Deserialize)]
pub(super) struct Parts {
    #[serde(default)]
    pub(super) normalizer: Value,
    #[serde(default)]
    pub(super) pre_tokenizer: Value,
    #[serde(default)]
    pub(super) decoder: Value,
    #[serde(default)]
    pub(super) post_processor: Value,
    #[serde(default)]
    added_tokens: Value,
    #[serde(default)]
    model: Model,
}

impl Parts {
    /// Refuses parts on which the library would panic, with their patterns in our engine's syntax.
    fn check(&self, document: &[u8]) -> Result<()> {
        flaws::check_text(&self.normalizer, &self.pre_tokenizer)?;
        flaws::check_decoder(&self.decoder)?;
        flaws::check_post_processor(&self.post_processor)?;
        flaws::check_added_tokens(&self.added_tokens)?;
        self.model.check(document)
    }
}

/// Patterns that must be tried on a text before they split it.
#[derive(Debug, Clone)]
pub(super) struct Patterns(Arc<Vec<Regex>>);

impl Patterns {
    /// Collects the patterns of a document, and returns its parts with these patterns in our engine's syntax. Refuses more than 1 MiB
    /// of them, what our engine cannot say, and parts on which the library would panic.
    pub(super) fn of(document: &[u8]) -> Result<(Self, Parts)> {
        let mut parts: Parts =
            serde_json::from_slice(document).map_err(|e| unread(TOKENIZER_FILE, document, e))?;
        let (mut compiled, mut bytes) = (Vec::new(), 0);
        for part in [
            &mut parts.normalizer,
            &mut parts.pre_tokenizer,
            &mut parts.decoder,
        ] {
            each(part, &mut |regex, text| {
                if regex && ![GPT2, LLAMA_BPE, QWEN2].contains(&text.as_str()) {
                    let own = rewritten(text)
                        .map_err(|Unsaid { found, reason }| unsaid(text, found, reason))?;
                    if bytes + own.len() <= MAX_PATTERN_BYTES {
                        compiled.push(
                            Regex::new(&own).map_err(|error| {
                                unsaid(text, error, "write it in a simpler way")
                            })?,
                        );
                    }
                    *text = own;
                }
                bytes += text.len();
                if bytes > MAX_PATTERN_BYTES {
                    return Err(over(
                        format!("at most {MAX_PATTERN_BYTES} bytes of patterns"),
                        bytes,
                    ));
                }
                Ok(())
            })?;
        }
        parts.check(document)?;
        Ok((Self(Arc::new(compiled)), parts))
    }

    /// Refuses a text on which a pattern needs more backtracking steps than the engine allows.
    pub(super) fn check(&self, text: &str) -> Result<()> {
        let stopped = self
            .0
            .iter()
            .find_map(|pattern| pattern.find_iter(text).find_map(std::result::Result::err));
        stopped.map_or(Ok(()), |error| {
            Err(over(
                "a pattern that matches within the engine's limit".into(),
                error,
            ))
        })
    }
}

/// Returns the refusal of an expression, in which `found` is not read for `reason`.
fn unsaid(expression: &str, found: impl std::fmt::Display, reason: &str) -> Error {
    let refusal = Refusal::new(word!("tokenizer.invalid"))
        .stage("bind")
        .of(TOKENIZER_FILE)
        .subject(expression);
    refusal
        .expected("an expression that can be read as Oniguruma reads it")
        .found(found)
        .hint(reason)
        .into()
}

fn over(expected: String, found: impl std::fmt::Display) -> Error {
    Refusal::new(word!("tokenizer.budget"))
        .stage("bind")
        .of(TOKENIZER_FILE)
        .expected(expected)
        .found(found)
        .into()
}

/// Hands every `{"Regex": text}` (true) and `{"String": text}` (false) below `value` to `found`.
fn each(value: &mut Value, found: &mut impl FnMut(bool, &mut String) -> Result<()>) -> Result<()> {
    match value {
        Value::Object(fields) => {
            for (key, inner) in fields {
                match (key.as_str(), inner) {
                    ("Regex", Value::String(text)) => found(true, text)?,
                    ("String", Value::String(text)) => found(false, text)?,
                    (_, inner) => each(inner, found)?,
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                each(item, found)?;
            }
        }
        _ => {}
    }
    Ok(())
}
