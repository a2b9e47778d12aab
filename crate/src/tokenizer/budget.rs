//! Limits the cost of the patterns in a `tokenizer.json`. The engine gives up on a text after a million backtracking steps, and the
//! `tokenizers` crate then silently stops splitting: the ids would be wrong. Therefore patterns that are not known to be harmless are tried
//! on each text first.

use std::sync::Arc;

use fancy_regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use super::expression::{Unsaid, rewritten};
use super::faults::refused;
use super::flaws;
use super::merges::Model;
use super::pre::{GPT2, LLAMA_BPE, QWEN2};
use super::{TOKENIZER_FILE, unread};
use crate::error::{Error, Result, word};

/// Maximum total size of a document's patterns in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// The parts of a `tokenizer.json` that contain patterns or may have flaws; the vocabulary is skipped.
#[derive(Debug, Deserialize)]
pub(super) struct Parts {
    #[serde(default)]
    pub normalizer: Value,
    #[serde(default)]
    pub pre_tokenizer: Value,
    #[serde(default)]
    pub decoder: Value,
    #[serde(default)]
    pub post_processor: Value,
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
    pub fn of(document: &[u8]) -> Result<(Self, Parts)> {
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
                        let simpler = |error| unsaid(text, error, "write it in a simpler way");
                        compiled.push(Regex::new(&own).map_err(simpler)?);
                    }
                    *text = own;
                }
                bytes += text.len();
                if bytes > MAX_PATTERN_BYTES {
                    let expected = format!("at most {MAX_PATTERN_BYTES} bytes of patterns");
                    return Err(over(&expected, bytes));
                }
                Ok(())
            })?;
        }
        parts.check(document)?;
        Ok((Self(Arc::new(compiled)), parts))
    }

    /// Refuses a text on which a pattern needs more backtracking steps than the engine allows.
    pub fn check(&self, text: &str) -> Result<()> {
        let mut matches = self.0.iter().flat_map(|pattern| pattern.find_iter(text));
        match matches.find_map(Result::err) {
            Some(error) => Err(over(
                "a pattern that matches within the engine's limit",
                error,
            )),
            None => Ok(()),
        }
    }
}

/// Returns the refusal of an expression, in which `found` is not read for `reason`.
fn unsaid(expression: &str, found: impl std::fmt::Display, reason: &str) -> Error {
    let expected = "an expression that can be read as Oniguruma reads it";
    let refusal = refused(word!("tokenizer.invalid"), TOKENIZER_FILE, expected);
    refusal.subject(expression).found(found).hint(reason).into()
}

fn over(expected: &str, found: impl std::fmt::Display) -> Error {
    let refusal = refused(word!("tokenizer.budget"), TOKENIZER_FILE, expected);
    refusal.found(found).into()
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
