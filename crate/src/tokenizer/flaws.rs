//! Refuses the parts of a `tokenizer.json` on which version 0.23 of the `tokenizers` crate would panic, which ends a worker in WebAssembly.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use fancy_regex::Expr;
use serde_json::Value;

use super::{TOKENIZER_FILE, bad};
use crate::error::{Error, Result};

const TEMPLATE: &str = "post_processor TemplateProcessing";
const NULL: &Value = &Value::Null;
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
    let is_empty = |step: &&Value| {
        is(step, "FixedLength") && step.get("length").and_then(Value::as_u64) == Some(0)
    };
    if pre_tokenizers.iter().any(is_empty) {
        return Err(refused(
            "pre_tokenizer FixedLength",
            "a length of at least 1",
            0,
        ));
    }
    // A step that writes all characters again asks for the places of the first ones, and a text that is put before them has none.
    let bytes = pre_tokenizers
        .iter()
        .any(|step| !CUTTING.iter().any(|name| is(step, name)));
    let last = normalizers
        .iter()
        .rposition(|step| !KEEPING.iter().any(|name| is(step, name)));
    for (at, step) in normalizers.iter().enumerate() {
        if is(step, "Precompiled") {
            check_charsmap(step.get("precompiled_charsmap").unwrap_or(NULL))?;
        }
        if !bytes && last.is_none_or(|last| last <= at) {
            continue;
        }
        if step.get("prepend").and_then(Value::as_str) == Some("") {
            return Err(refused(
                "normalizer Prepend",
                "a text to put before another",
                "an empty one",
            ));
        }
        let writes = step
            .get("content")
            .and_then(Value::as_str)
            .is_some_and(|text| !text.is_empty());
        if let Some(pattern) = step
            .get("pattern")
            .filter(|pattern| writes && may_match_nothing(pattern))
        {
            return Err(refused(
                "normalizer Replace",
                "a pattern that matches at least one character",
                pattern,
            ));
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
        step.get("content")
            .and_then(|_| step.get("stop")?.as_u64())
            .filter(|stop| *stop > 0)
    };
    match decoders.iter().find_map(stripped) {
        Some(stop) => Err(refused(
            "decoder Strip",
            "a stop of 0, since a token may be shorter than what is stripped",
            stop,
        )),
        None => Ok(()),
    }
}

/// Refuses post-processors on which the library would panic.
///
/// # Errors
/// `tokenizer.invalid`.
pub(super) fn check_post_processor(processor: &Value) -> Result<()> {
    // With special tokens for the frame of a text, without them for the text.
    [true, false]
        .into_iter()
        .try_for_each(|special| processed(processor, 1, special).map(drop))
}

/// Refuses added tokens on which the library would panic: one of spaces that takes those before it, although a token there took them.
///
/// # Errors
/// `tokenizer.invalid`.
pub(super) fn check_added_tokens(tokens: &Value) -> Result<()> {
    let tokens = tokens.as_array().map(Vec::as_slice).unwrap_or_default();
    let left = tokens
        .iter()
        .filter(|token| says(token, "lstrip") && !says(token, "rstrip"));
    let mut spaces = left
        .filter_map(|token| token.get("content")?.as_str())
        .filter(|text| !text.is_empty() && text.trim().is_empty());
    match spaces
        .next()
        .filter(|_| tokens.iter().any(|token| says(token, "rstrip")))
    {
        Some(text) => Err(refused(
            "added_tokens",
            "no lstrip for a token of spaces, where another token has rstrip",
            format!("{text:?}"),
        )),
        None => Ok(()),
    }
}

/// Returns the refusal of a part.
pub(super) fn refused(part: &str, expected: &str, found: impl fmt::Display) -> Error {
    bad(
        TOKENIZER_FILE,
        format!("{part}: expected {expected}, found {found}"),
    )
}

/// Collects the steps of a part in their order, with the sequences that have further ones under `key`.
fn steps<'a>(part: &str, key: &str, value: &'a Value, all: &mut Vec<&'a Value>) -> Result<()> {
    match value {
        Value::Null => Ok(()),
        // The library reads some lists as the fields of a step.
        Value::Object(fields) => {
            all.push(value);
            let mut inner = fields
                .get(key)
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            inner.try_for_each(|step| steps(part, key, step, all))
        }
        other => Err(refused(part, "an object", other)),
    }
}

/// Returns true if a step has the type `name`, which JSON may also write as the key of an object.
fn is(step: &Value, name: &str) -> bool {
    match step.get("type") {
        Some(Value::Object(fields)) => fields.contains_key(name),
        other => other.and_then(Value::as_str) == Some(name),
    }
}

/// Returns true if a token has this setting.
fn says(token: &Value, key: &str) -> bool {
    token.get(key).and_then(Value::as_bool) == Some(true)
}

/// Returns true if a pattern may match an empty text.
fn may_match_nothing(pattern: &Value) -> bool {
    let text = |key: &str| pattern.get(key).and_then(Value::as_str);
    match (text("String"), text("Regex")) {
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
    let fields = match processor {
        Value::Null => return Ok(count),
        Value::Object(fields) => fields,
        other => return Err(refused("post_processor", "an object", other)),
    };
    let mut inner = fields
        .get("processors")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let after = inner.try_fold(count, |count, processor| {
        processed(processor, count, special)
    })?;
    if !fields.contains_key("single") {
        return Ok(after);
    }
    let template = match count {
        1 => "single",
        2 => "pair",
        _ => {
            return Err(refused(
                TEMPLATE,
                "one or two parts of a text from the processors before it",
                count,
            ));
        }
    };
    let mut parts = 0;
    for piece in fields
        .get(template)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let id = |kind: &str| {
            piece
                .get(kind)
                .map(|piece| piece.get("id").or_else(|| piece.get(0)).unwrap_or(NULL))
        };
        if let Some(id) = id("Sequence") {
            if id != "A" && count < 2 {
                return Err(refused(
                    TEMPLATE,
                    "Sequence A alone for a single text",
                    format!("Sequence {id}"),
                ));
            }
            parts += 1;
        } else if let Some(id) = id("SpecialToken") {
            let listed = fields
                .get("special_tokens")
                .zip(id.as_str())
                .is_some_and(|(tokens, id)| tokens.get(id).is_some());
            if !listed {
                return Err(refused(
                    TEMPLATE,
                    "special tokens that are listed in special_tokens",
                    id,
                ));
            }
            parts += usize::from(special);
        }
    }
    Ok(parts)
}

/// Refuses a table of replaced characters that cannot be read, or whose search would leave it: the length of a trie, its units, texts.
fn check_charsmap(value: &Value) -> Result<()> {
    let text = value
        .as_str()
        .ok_or_else(|| refused(PRECOMPILED, "a precompiled_charsmap in base64", value))?;
    // Padding may be left out.
    let bytes = STANDARD
        .decode(text)
        .or_else(|_| STANDARD_NO_PAD.decode(text));
    let bytes =
        bytes.map_err(|error| refused(PRECOMPILED, "a precompiled_charsmap in base64", error))?;
    let short = || {
        refused(
            PRECOMPILED,
            "a precompiled_charsmap with the whole of its trie",
            format!("{} bytes", bytes.len()),
        )
    };
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
    let units = (u32::from_le_bytes(*length) / 4) as usize;
    let (trie, texts) = rest.split_at_checked(units * 4).ok_or_else(short)?;
    let texts = std::str::from_utf8(texts)
        .map_err(|error| refused(PRECOMPILED, "texts of UTF-8 in precompiled_charsmap", error))?;
    let units: Vec<u32> = trie
        .as_chunks::<4>()
        .0
        .iter()
        .map(|unit| u32::from_le_bytes(*unit))
        .collect();
    match is_trie(&units, texts) {
        true => Ok(()),
        false => Err(refused(
            PRECOMPILED,
            "a trie in precompiled_charsmap that leads to its texts",
            "one that leads elsewhere",
        )),
    }
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
            if has_leaf
                && !units
                    .get(below)
                    .is_some_and(|leaf| texts.is_char_boundary((leaf & 0x7fff_ffff) as usize))
            {
                return false;
            }
            places.push(below);
        }
    }
    true
}
