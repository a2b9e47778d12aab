//! Explains why a document is not JSON, in the words of whoever has to mend it.

use super::json;
use super::json::JsonFault;
use super::mark::{Flaw, foreign, quoted};
use crate::error::{Refusal, shown};

/// Depth to which a document is scanned: that of serde_json.
const MAX_DEPTH: usize = 128;

const FETCH_AGAIN: &str = "if the file was downloaded, fetch it again";

/// Words that other languages write in place of a value, with the suggestion for each.
const WORDS: [(&str, &str); 13] = [
    ("//", "JSON has no comments: remove it"),
    ("/*", "JSON has no comments: remove it"),
    ("#", "JSON has no comments: remove it"),
    ("NaN", "JSON has no such number: write a number or null"),
    ("nan", "JSON has no such number: write a number or null"),
    (
        "-Infinity",
        "JSON has no such number: write a number or null",
    ),
    (
        "Infinity",
        "JSON has no such number: write a number or null",
    ),
    ("inf", "JSON has no such number: write a number or null"),
    ("True", "JSON writes true"),
    ("False", "JSON writes false"),
    ("None", "JSON writes null"),
    ("'", "JSON has double quotes"),
    ("+", "JSON has no plus sign before a number"),
];

/// Thing that was found where `bytes` should be JSON: another kind of file, a message, or the first place at which the grammar
/// is broken. Returns `None` for JSON, and for a document whose fault is not one of grammar.
pub fn not_json(bytes: &[u8]) -> Option<Flaw> {
    if let Some(flaw) = foreign(bytes) {
        return Some(flaw);
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => return Some(cut()),
        Err(error) => {
            let found = format!("a byte at {} that is not UTF-8", error.valid_up_to());
            return Some(Flaw::new(found, "save the file as UTF-8"));
        }
    };
    match json::parse(text, MAX_DEPTH) {
        Err(JsonFault::Syntax { at }) => Some(of_fault(text, at)),
        _ => None,
    }
}

/// Adds the thing that was found in the place of JSON to the refusal of a document.
pub(crate) fn describe_flaw(refusal: Refusal, bytes: &[u8]) -> Refusal {
    match not_json(bytes) {
        Some(flaw) => flaw.describe(refusal.expected("JSON")),
        None => refusal,
    }
}

fn cut() -> Flaw {
    Flaw::new("a file that ends in the middle", FETCH_AGAIN)
}

/// Describes the fault at the byte `at`.
fn of_fault(text: &str, at: usize) -> Flaw {
    // The scan stops at a byte that may lie within a character.
    let start = (0..=at.min(text.len()))
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0);
    let (before, rest) = text.split_at(start);
    if rest.trim_ascii().is_empty() {
        return cut();
    }
    if before.trim_ascii().is_empty() || !text.trim_ascii_start().starts_with(['{', '[']) {
        let found = if rest.starts_with('<') {
            "a page of HTML".to_string()
        } else {
            quoted("the text", text.as_bytes())
        };
        return Flaw::new(found, FETCH_AGAIN);
    }
    // The scan has passed the sign of a number, and the first letter of a word that might have been null.
    let back = before
        .char_indices()
        .next_back()
        .map_or(rest, |(last, _)| &text[last..]);
    let is_at = |word: &str| {
        rest.starts_with(word) || word.starts_with(['-', 'n']) && back.starts_with(word)
    };
    let here = |found: &str, hint| Flaw::new(format!("{found} in {}", place(before)), hint);
    if let Some((word, hint)) = WORDS.iter().find(|(word, _)| is_at(word)) {
        return here(word, hint);
    }
    if rest.starts_with(['}', ']']) && before.trim_ascii_end().ends_with(',') {
        return here("a comma before the closing bracket", "remove the comma");
    }
    let conflict = ["<<<<<<<", "=======", ">>>>>>>", "|||||||"]
        .iter()
        .any(|mark| rest.starts_with(mark));
    if conflict {
        return here(
            "an unfinished merge of Git",
            "settle the conflict, or fetch the file again",
        );
    }
    let next: String = rest.chars().take(1).collect();
    here(
        &format!("the character {}", shown(&next)),
        "no JSON may have it there",
    )
}

/// Line and column, from 1, of the place that this text comes before.
fn place(before: &str) -> String {
    let line = before.matches('\n').count() + 1;
    let last = before.rsplit('\n').next().unwrap_or_default();
    let column = last.chars().count() + 1;
    format!("line {line}, column {column}")
}
