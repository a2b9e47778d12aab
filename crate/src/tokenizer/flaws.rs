//! Refuses the parts of a `tokenizer.json` on which version 0.23 of the `tokenizers` crate would panic, which ends a worker in WebAssembly.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use fancy_regex::Expr;
use serde_json::Value;

use super::{TOKENIZER_FILE, bad};
use crate::error::{Error, Result};

const TEMPLATE: &str = "post_processor TemplateProcessing";
const PRECOMPILED: &str = "normalizer Precompiled";

/// Normalizers that keep the places of the characters that they do not replace.
const KEEPING: [&str; 3] = ["Prepend", "Replace", "Sequence"];
/// Pre-tokenizers that only cut a text.
const CUTTING: [&str; 12] = [
    "BertPreTokenizer",
    "CharDelimiterSplit",
    "Delimiter",
    "Digits",
    "FixedLength",
    "Metaspace",
    "Punctuation",
    "Sequence",
    "Split",
    "UnicodeScripts",
    "Whitespace",
    "WhitespaceSplit",
];

/// Refuses normalizers and pre-tokenizers on which the library would panic. Expressions are in our engine's syntax.
///
/// # Errors
/// `tokenizer.invalid`.
pub(super) fn check_text(normalizer: &Value, pre_tokenizer: &Value) -> Result<()> {
    let (mut normalizers, mut pre_tokenizers) = (Vec::new(), Vec::new());
    steps("normalizer", "normalizers", normalizer, &mut normalizers)?;
    steps(
        "pre_tokenizer",
        "pretokenizers",
        pre_tokenizer,
        &mut pre_tokenizers,
    )?;
    let is_empty = |step: &&Value| is(step, "FixedLength") && step["length"] == 0;
    if pre_tokenizers.iter().any(is_empty) {
        return Err(refused(
            "pre_tokenizer FixedLength",
            "a length of at least 1",
            0,
        ));
    }
    // A step that writes all characters again asks for the places of the first ones, and a text that is put before them has none.
    let is_one_of = |step: &Value, names: &[&str]| names.iter().any(|name| is(step, name));
    let bytes = pre_tokenizers.iter().any(|step| !is_one_of(step, &CUTTING));
    let last = normalizers
        .iter()
        .rposition(|step| !is_one_of(step, &KEEPING));
    for (at, step) in normalizers.iter().enumerate() {
        if is(step, "Precompiled") {
            check_charsmap(&step["precompiled_charsmap"])?;
        }
        if !bytes && last.is_none_or(|last| last <= at) {
            continue;
        }
        if step["prepend"] == "" {
            let expected = "a text to put before another";
            return Err(refused("normalizer Prepend", expected, "an empty one"));
        }
        let (writes, pattern) = (step["content"].as_str(), &step["pattern"]);
        if writes.is_some_and(|text| !text.is_empty()) && may_match_nothing(pattern) {
            let expected = "a pattern that matches at least one character";
            return Err(refused("normalizer Replace", expected, pattern));
        }
    }
    Ok(())
}

/// Refuses decoders on which the library would panic.
///
/// # Errors
/// `tokenizer.invalid`.
pub(super) fn check_decoder(decoder: &Value) -> Result<()> {
    let mut decoders = Vec::new();
    steps("decoder", "decoders", decoder, &mut decoders)?;
    // The library reads the end of a token that has fewer characters, and none may be left by the step before.
    let stripped = |step: &&Value| {
        let stop = step.get("content").and(step["stop"].as_u64());
        stop.filter(|stop| *stop > 0)
    };
    let expected = "a stop of 0, since a token may be shorter than what is stripped";
    match decoders.iter().find_map(stripped) {
        Some(stop) => Err(refused("decoder Strip", expected, stop)),
        None => Ok(()),
    }
}

/// Refuses post-processors on which the library would panic.
///
/// # Errors
/// `tokenizer.invalid`.
pub(super) fn check_post_processor(processor: &Value) -> Result<()> {
    // With special tokens for the frame of a text, without them for the text.
    processed(processor, 1, true)?;
    processed(processor, 1, false).map(drop)
}

/// Refuses added tokens on which the library would panic: one of spaces that takes those before it, although a token there took them.
///
/// # Errors
/// `tokenizer.invalid`.
pub(super) fn check_added_tokens(tokens: &Value) -> Result<()> {
    let tokens = || tokens.as_array().into_iter().flatten();
    let left = tokens().filter(|token| token["lstrip"] == true && token["rstrip"] != true);
    let mut texts = left.filter_map(|token| token["content"].as_str());
    let spaces = texts.find(|text| !text.is_empty() && text.trim().is_empty());
    match spaces.filter(|_| tokens().any(|token| token["rstrip"] == true)) {
        Some(text) => {
            let expected = "no lstrip for a token of spaces, where another token has rstrip";
            Err(refused("added_tokens", expected, format!("{text:?}")))
        }
        None => Ok(()),
    }
}

/// Returns the refusal of a part.
pub(super) fn refused(part: &str, expected: &str, found: impl fmt::Display) -> Error {
    let reason = format!("{part}: expected {expected}, found {found}");
    bad(TOKENIZER_FILE, reason)
}

/// Collects the steps of a part in their order, with the sequences that have further ones under `key`.
fn steps<'a>(part: &str, key: &str, value: &'a Value, all: &mut Vec<&'a Value>) -> Result<()> {
    match value {
        Value::Null => Ok(()),
        // The library reads some lists as the fields of a step.
        Value::Object(_) => {
            all.push(value);
            let mut inner = value[key].as_array().into_iter().flatten();
            inner.try_for_each(|step| steps(part, key, step, all))
        }
        other => Err(refused(part, "an object", other)),
    }
}

/// Returns true if a step has the type `name`, which JSON may also write as the key of an object.
fn is(step: &Value, name: &str) -> bool {
    match &step["type"] {
        Value::Object(fields) => fields.contains_key(name),
        other => other == name,
    }
}

/// Returns true if a pattern may match an empty text.
fn may_match_nothing(pattern: &Value) -> bool {
    match (pattern["String"].as_str(), pattern["Regex"].as_str()) {
        (Some(text), _) => text.is_empty(),
        (None, Some(text)) => Expr::parse_tree(text).is_ok_and(|tree| !consumes(&tree.expr)),
        (None, None) => false,
    }
}

/// Returns true if all matches of an expression have a character.
fn consumes(expression: &Expr) -> bool {
    match expression {
        Expr::Any { .. } => true,
        Expr::Literal { val, .. } => !val.is_empty(),
        Expr::Delegate { size, .. } => *size > 0,
        Expr::Concat(all) => all.iter().any(consumes),
        Expr::Alt(all) => all.iter().all(consumes),
        Expr::Group(inner) | Expr::AtomicGroup(inner) => consumes(inner),
        Expr::Repeat { child, lo, .. } => *lo > 0 && consumes(child),
        _ => false,
    }
}

/// Returns the number of parts that a post-processor makes of `count` parts of a text.
fn processed(processor: &Value, count: usize, special: bool) -> Result<usize> {
    match processor {
        Value::Null => return Ok(count),
        Value::Object(_) => {}
        other => return Err(refused("post_processor", "an object", other)),
    }
    let items = |key: &str| processor[key].as_array().into_iter().flatten();
    let then = |count, processor| processed(processor, count, special);
    let after = items("processors").try_fold(count, then)?;
    if processor.get("single").is_none() {
        return Ok(after);
    }
    let template = match count {
        1 => "single",
        2 => "pair",
        _ => {
            let expected = "one or two parts of a text from the processors before it";
            return Err(refused(TEMPLATE, expected, count));
        }
    };
    let mut parts = 0;
    for piece in items(template) {
        let id = |kind: &str| {
            let piece = piece.get(kind)?;
            Some(piece.get("id").unwrap_or(&piece[0]))
        };
        if let Some(id) = id("Sequence") {
            if id != "A" && count < 2 {
                let found = format!("Sequence {id}");
                return Err(refused(
                    TEMPLATE,
                    "Sequence A alone for a single text",
                    found,
                ));
            }
            parts += 1;
        } else if let Some(id) = id("SpecialToken") {
            let listed = id
                .as_str()
                .and_then(|id| processor["special_tokens"].get(id));
            if listed.is_none() {
                let expected = "special tokens that are listed in special_tokens";
                return Err(refused(TEMPLATE, expected, id));
            }
            parts += usize::from(special);
        }
    }
    Ok(parts)
}

/// Refuses a table of replaced characters that cannot be read, or whose search would leave it: the length of a trie, its units, texts.
fn check_charsmap(value: &Value) -> Result<()> {
    const BASE64: &str = "a precompiled_charsmap in base64";
    let text = value
        .as_str()
        .ok_or_else(|| refused(PRECOMPILED, BASE64, value))?;
    // Padding may be left out.
    let bytes = STANDARD
        .decode(text)
        .or_else(|_| STANDARD_NO_PAD.decode(text));
    let bytes = bytes.map_err(|error| refused(PRECOMPILED, BASE64, error))?;
    let short = || {
        let expected = "a precompiled_charsmap with the whole of its trie";
        refused(PRECOMPILED, expected, format!("{} bytes", bytes.len()))
    };
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
    let units = (u32::from_le_bytes(*length) / 4) as usize;
    let (trie, texts) = rest.split_at_checked(units * 4).ok_or_else(short)?;
    let texts = std::str::from_utf8(texts)
        .map_err(|error| refused(PRECOMPILED, "texts of UTF-8 in precompiled_charsmap", error))?;
    let units = trie
        .as_chunks::<4>()
        .0
        .iter()
        .map(|unit| u32::from_le_bytes(*unit));
    if is_trie(&units.collect::<Vec<u32>>(), texts) {
        return Ok(());
    }
    let expected = "a trie in precompiled_charsmap that leads to its texts";
    Err(refused(PRECOMPILED, expected, "one that leads elsewhere"))
}

/// Returns true if each search in a double array of the Darts library stays in it, and ends at the beginning of a character of `texts`.
fn is_trie(units: &[u32], texts: &str) -> bool {
    let offset = |unit: u32| ((unit >> 10) << ((unit & (1 << 9)) >> 6)) as usize;
    let Some(root) = units.first() else {
        return false;
    };
    let (mut seen, mut places) = (vec![false; units.len()], vec![offset(*root)]);
    while let Some(place) = places.pop() {
        // The bytes of UTF-8 but for zero, which ends a text.
        for byte in 1..=0xf4_usize {
            let next = place ^ byte;
            let (Some(&unit), Some(known)) = (units.get(next), seen.get_mut(next)) else {
                return false;
            };
            if (unit & 0x8000_00ff) as usize != byte || std::mem::replace(known, true) {
                continue;
            }
            let below = next ^ offset(unit);
            let has_leaf = (unit >> 8) & 1 == 1;
            let leads = |leaf: &u32| texts.is_char_boundary((leaf & 0x7fff_ffff) as usize);
            if has_leaf && !units.get(below).is_some_and(leads) {
                return false;
            }
            places.push(below);
        }
    }
    true
}
