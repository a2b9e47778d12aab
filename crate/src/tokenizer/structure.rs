//! Finds the rule that GGUF can name for a tokenizer, by the structure of its document.

mod byte_level;
mod sentence_piece;

use std::collections::HashMap;

use serde_json::Value;

use super::coverage::has_step;
use super::parts::{NORMAL, PartsModel, TokenizerParts};
use super::{TOKENIZER_FILE, bad, llama_cpp};
use crate::error::{Refusal, Result, shown, word};

pub(super) fn refuse(expected: &str) -> Refusal {
    Refusal::new(word!("export.gguf.tokenizer"))
        .of(TOKENIZER_FILE)
        .expected(expected)
}

/// Part of a document that llama.cpp has no rule for: what it does, as the words after its name, and what was found in it.
struct Difference {
    part: &'static str,
    does: &'static str,
    found: String,
}

fn differs<T>(part: &'static str, does: &'static str, found: impl ToString) -> Compared<T> {
    Err(Difference {
        part,
        does,
        found: found.to_string(),
    })
}

/// Words about a pre-tokenizer whose rule llama.cpp does not have.
const OTHER_RULE: &str = "splits texts by a rule that llama.cpp does not have";

type Compared<T> = Result<T, Difference>;

/// A document and what was made of it.
pub(super) struct Structure<'a> {
    /// The document, with the expressions as they were published.
    pub document: &'a Value,
    /// Normalizer and pre-tokenizer that are applied, which settings in other files may have changed.
    pub applied: [Value; 2],
    /// Added tokens: text, and true if they are searched for in the normalized text.
    pub added: Vec<(String, bool)>,
    /// True if special tokens are letters in a text (`split_special_tokens`).
    pub splits_special: bool,
}

impl Structure<'_> {
    /// Returns the model of GGUF that has exactly this rule.
    ///
    /// # Errors
    /// `export.gguf.tokenizer` with the part that llama.cpp has no rule for; `tokenizer.invalid`.
    pub fn model(&self, parts: &TokenizerParts) -> Result<PartsModel> {
        let no_pairs = || bad(TOKENIZER_FILE, "merges that are no pairs");
        let listed = merges(self.document).ok_or_else(no_pairs)?;
        let byte_level = ["pre_tokenizer", "decoder"]
            .into_iter()
            .any(|part| has_step(Some(&self.document[part]), "ByteLevel"));
        let found = self.common(parts).and_then(|()| match byte_level {
            true => self.byte_level(parts, &listed),
            false => self.sentence_piece(parts, &listed),
        });
        found.map_err(|Difference { part, does, found }| {
            let refusal = Refusal::new(word!("export.gguf.tokenizer"));
            let found = format!("{does}: {}", shown(&found));
            refusal
                .of(TOKENIZER_FILE)
                .subject(part)
                .found_whole(found)
                .into()
        })
    }

    /// Checks what both kinds of vocabularies have.
    fn common(&self, parts: &TokenizerParts) -> Compared<()> {
        for part in ["continuing_subword_prefix", "end_of_word_suffix"] {
            let value = &self.document["model"][part];
            if value.as_str().is_some_and(|text| !text.is_empty()) {
                let does = "marks parts of words, which llama.cpp does not";
                return differs("model", does, format!("{part} {value}"));
            }
        }
        let ordinary = |(id, text): &(usize, &String)| {
            parts.kind(*id) == NORMAL && llama_cpp::is_known_text(text)
        };
        if let Some((_, text)) = parts.tokens.iter().enumerate().find(ordinary) {
            let does = "lack a token that llama.cpp takes for a special one by its text";
            return differs("added_tokens", does, text);
        }
        if self.splits_special {
            let does = "are letters in a text, where llama.cpp finds them";
            return differs("added_tokens", does, "split_special_tokens");
        }
        let contents: Vec<&str> = self.added.iter().map(|(text, _)| text.as_str()).collect();
        match crossing(&contents) {
            Some((left, right)) => {
                let does = "overlap, so that llama.cpp finds other ones in a text";
                differs("added_tokens", does, format!("{left} and {right}"))
            }
            None => Ok(()),
        }
    }
}

/// Returns the steps of a normalizer or a pre-tokenizer.
fn normalizers(value: &Value) -> Vec<&Value> {
    match value {
        Value::Null => Vec::new(),
        sequence if sequence["type"] == "Sequence" => {
            let steps = sequence["normalizers"].as_array().into_iter().flatten();
            steps.flat_map(normalizers).collect()
        }
        step => vec![step],
    }
}

/// Returns two texts that overlap such that a search for the longest first finds others than one from the left.
fn crossing<'a>(texts: &[&'a str]) -> Option<(&'a str, &'a str)> {
    let mut beginnings: HashMap<&str, Vec<&'a str>> = HashMap::new();
    for text in texts {
        for (cut, _) in text.char_indices().skip(1) {
            beginnings.entry(&text[..cut]).or_default().push(text);
        }
    }
    for left in texts {
        for (cut, _) in left.char_indices().skip(1) {
            let end = &left[cut..];
            let mut rights = beginnings.get(end).into_iter().flatten();
            let longer = rights.find(|right| right.len() >= left.len() && **right != *left);
            let Some(right) = longer else { continue };
            let joined = format!("{left}{}", &right[end.len()..]);
            // One that begins where the left one does, and is as long as the right one, is found first by both.
            let is_first = |text: &&str| text.len() >= right.len() && joined.starts_with(text);
            if !texts.iter().any(is_first) {
                return Some((left, right));
            }
        }
    }
    None
}

/// Returns the merges, best first, each of which is a pair or a text with a space between its parts.
fn merges(document: &Value) -> Option<Vec<(&str, &str)>> {
    document["model"]["merges"]
        .as_array()?
        .iter()
        .map(merge)
        .collect()
}

fn merge(value: &Value) -> Option<(&str, &str)> {
    match value {
        Value::String(text) => text.split_once(' '),
        Value::Array(pair) if pair.len() == 2 => Some((value[0].as_str()?, value[1].as_str()?)),
        _ => None,
    }
}
