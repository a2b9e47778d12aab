//! Finds the rule that GGUF can name for a tokenizer, by the structure of its document.

mod byte_level;
mod sentence_piece;

use std::collections::HashMap;

use serde_json::Value;

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

fn differs(part: &'static str, does: &'static str, found: impl ToString) -> Difference {
    Difference {
        part,
        does,
        found: found.to_string(),
    }
}

/// Words about a pre-tokenizer whose rule llama.cpp does not have.
const OTHER_RULE: &str = "splits texts by a rule that llama.cpp does not have";

type Compared<T> = std::result::Result<T, Difference>;

/// A document and what was made of it.
pub(super) struct Structure<'a> {
    /// The document, with the expressions as they were published.
    pub(super) document: &'a Value,
    /// Normalizer and pre-tokenizer that are applied, which settings in other files may have changed.
    pub(super) applied: [Value; 2],
    /// Added tokens: text, and true if they are searched for in the normalized text.
    pub(super) added: Vec<(String, bool)>,
    /// True if special tokens are letters in a text (`split_special_tokens`).
    pub(super) splits_special: bool,
}

impl Structure<'_> {
    /// Returns the model of GGUF that has exactly this rule.
    ///
    /// # Errors
    /// `export.gguf.tokenizer` with the part that llama.cpp has no rule for; `tokenizer.invalid`.
    pub(super) fn model(&self, parts: &TokenizerParts) -> Result<PartsModel> {
        let listed =
            merges(self.document).ok_or_else(|| bad(TOKENIZER_FILE, "merges that are no pairs"))?;
        let byte_level = ["pre_tokenizer", "decoder"]
            .iter()
            .any(|part| self.document[*part].to_string().contains("\"ByteLevel\""));
        let found = self.common(parts).and_then(|()| match byte_level {
            true => self.byte_level(parts, &listed),
            false => self.sentence_piece(parts, &listed),
        });
        found.map_err(|Difference { part, does, found }| {
            let refusal = Refusal::new(word!("export.gguf.tokenizer"))
                .of(TOKENIZER_FILE)
                .subject(part);
            refusal
                .found_whole(format!("{does}: {}", shown(&found)))
                .into()
        })
    }

    /// Checks what both kinds of vocabularies have.
    fn common(&self, parts: &TokenizerParts) -> Compared<()> {
        for part in ["continuing_subword_prefix", "end_of_word_suffix"] {
            let value = &self.document["model"][part];
            if value.as_str().is_some_and(|text| !text.is_empty()) {
                return Err(differs(
                    "model",
                    "marks parts of words, which llama.cpp does not",
                    format!("{part} {value}"),
                ));
            }
        }
        let ordinary = |(id, text): &(usize, &String)| {
            parts.kind(*id) == NORMAL && llama_cpp::is_known_text(text)
        };
        if let Some((_, text)) = parts.tokens.iter().enumerate().find(ordinary) {
            return Err(differs(
                "added_tokens",
                "lack a token that llama.cpp takes for a special one by its text",
                text,
            ));
        }
        if self.splits_special {
            return Err(differs(
                "added_tokens",
                "are letters in a text, where llama.cpp finds them",
                "split_special_tokens",
            ));
        }
        let contents: Vec<&str> = self.added.iter().map(|(text, _)| text.as_str()).collect();
        match crossing(&contents) {
            Some((left, right)) => Err(differs(
                "added_tokens",
                "overlap, so that llama.cpp finds other ones in a text",
                format!("{left} and {right}"),
            )),
            None => Ok(()),
        }
    }
}

/// Returns the steps of a normalizer or a pre-tokenizer.
fn normalizers(value: &Value) -> Vec<&Value> {
    match value {
        Value::Null => Vec::new(),
        sequence if sequence["type"] == "Sequence" => sequence["normalizers"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(normalizers)
            .collect(),
        step => vec![step],
    }
}

/// Returns two texts that overlap such that a search for the longest first finds others than one from the left.
fn crossing<'a>(texts: &[&'a str]) -> Option<(&'a str, &'a str)> {
    let mut beginnings: HashMap<&str, Vec<&'a str>> = HashMap::new();
    for text in texts {
        for (cut, _) in text.char_indices().skip(1) {
            beginnings
                .entry(text.split_at(cut).0)
                .or_default()
                .push(text);
        }
    }
    for left in texts {
        for (cut, _) in left.char_indices().skip(1) {
            let end = left.split_at(cut).1;
            let longer = beginnings
                .get(end)
                .into_iter()
                .flatten()
                .find(|right| right.len() >= left.len() && **right != *left);
            let joined = longer
                .map(|right| format!("{left}{}", right.strip_prefix(end).unwrap_or_default()));
            // One that begins where the left one does, and is as long as the right one, is found first by both.
            if let (Some(right), Some(joined)) = (longer, joined)
                && !texts
                    .iter()
                    .any(|text| text.len() >= right.len() && joined.starts_with(text))
            {
                return Some((left, right));
            }
        }
    }
    None
}

/// Returns the merges, best first, each of which is a pair or a text with a space between its parts.
fn merges(document: &Value) -> Option<Vec<(&str, &str)>> {
    document
        .pointer("/model/merges")?
        .as_array()?
        .iter()
        .map(merge)
        .collect()
}

fn merge(value: &Value) -> Option<(&str, &str)> {
    match value {
        Value::String(text) => text.split_once(' '),
        Value::Array(pair) => match pair.as_slice() {
            [left, right] => Some((left.as_str()?, right.as_str()?)),
            _ => None,
        },
        _ => None,
    }
}
