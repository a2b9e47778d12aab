//! Checks the tokenizer metadata of GGUF (crate/FORMATS.md, "Tokenizer of a GGUF").

use std::collections::HashSet;

use super::gguf_tokenizer::{FILL_IDS, IDS, NAMED_TEMPLATE, NONE, refuse};
use crate::error::{Result, Warning, word};
use crate::formats::{GgufFile, GgufValue};
use crate::tokenizer::TOKENIZER_JSON_SERVES;

const KNOWN_MODELS: [&str; 6] = ["gpt2", "llama", "bert", "t5", "gemma4", "rwkv"];
const BYTE: u64 = 6;

/// Words of [`IDS`] whose ids no text needs.
const BESIDE_THE_TEXT: [&str; 4] = ["pad", "sep", "cls", "mask"];

/// Refuses tokenizer metadata that contradict themselves; a file without any is accepted. Returns warnings about ids that no token has, of
/// roles that no text needs.
pub(super) fn check_tokenizer(file: &GgufFile) -> Result<Vec<Warning>> {
    if !file
        .metadata
        .iter()
        .any(|(key, _)| key.starts_with("tokenizer.ggml."))
    {
        return Ok(Vec::new());
    }
    let model = file
        .get("tokenizer.ggml.model")
        .and_then(GgufValue::text)
        .ok_or_else(|| refuse(word!("tokenizer.model.missing")))?;
    if model == NONE {
        return Ok(Vec::new());
    }
    check_types(file)?;
    if !KNOWN_MODELS.contains(&model) {
        let refusal = refuse(word!("tokenizer.model.unsupported"))
            .expected("gpt2 or llama")
            .found(model);
        return Err(refusal.hint(TOKENIZER_JSON_SERVES).into());
    }
    let tokens = file
        .get("tokenizer.ggml.tokens")
        .and_then(GgufValue::texts)
        .ok_or_else(|| refuse(word!("tokenizer.tokens.missing")))?;
    check_lists(file, &tokens)?;
    let sorted = sorted(&tokens);
    if let Some(twice) = first_twice(&sorted) {
        return Err(refuse(word!("tokenizer.token.duplicate"))
            .subject(&String::from_utf8_lossy(twice))
            .into());
    }
    let types = file
        .get("tokenizer.ggml.token_type")
        .and_then(GgufValue::counts)
        .unwrap_or_default();
    let bytes = tokens.iter().zip(&types).filter(|(_, kind)| **kind == BYTE);
    if let Some((token, _)) = bytes.into_iter().find(|(token, _)| !is_byte_form(token)) {
        return Err(refuse(word!("tokenizer.token.byte-form"))
            .expected("<0x00> to <0xFF>")
            .found(String::from_utf8_lossy(token))
            .into());
    }
    if model == "gpt2" {
        check_merges(file, &sorted)?;
    }
    let mut warnings = Vec::new();
    for (key, word) in IDS {
        let wrong = file
            .get(key)
            .filter(|value| value.count().is_none_or(|id| id >= tokens.len() as u64));
        if let Some(value) = wrong {
            if BESIDE_THE_TEXT.contains(&word) {
                warnings.push(Warning::new(word!("tokenizer.id.unused"), word));
                continue;
            }
            let found = value
                .count()
                .map_or_else(|| "no count".to_string(), |id| id.to_string());
            return Err(refuse(word!("tokenizer.id.range"))
                .subject(word)
                .expected(format!("less than {}", tokens.len()))
                .found(found)
                .into());
        }
    }
    let templates = file
        .get("tokenizer.chat_templates")
        .and_then(GgufValue::texts)
        .unwrap_or_default();
    let unnamed = file.get("tokenizer.chat_template").is_some();
    let named: HashSet<&[u8]> = file
        .metadata
        .iter()
        .filter_map(|(key, _)| key.strip_prefix(NAMED_TEMPLATE))
        .map(str::as_bytes)
        .collect();
    let is_there =
        |template: &&[u8]| named.contains(template) || unnamed && *template == b"default";
    match templates.into_iter().find(|template| !is_there(template)) {
        Some(absent) => Err(refuse(word!("tokenizer.template.missing"))
            .subject(&String::from_utf8_lossy(absent))
            .into()),
        None => Ok(warnings),
    }
}

/// Returns the tokens sorted, equal ones in the order of the file.
fn sorted<'a>(tokens: &[&'a [u8]]) -> Vec<&'a [u8]> {
    // Empty tokens get names of their own.
    let mut sorted: Vec<&[u8]> = tokens
        .iter()
        .copied()
        .filter(|token| !token.is_empty())
        .collect();
    sorted.sort_unstable_by_key(|token| (*token, token.as_ptr()));
    sorted
}

/// Returns the first token in the file that repeats an earlier one.
fn first_twice<'a>(sorted: &[&'a [u8]]) -> Option<&'a [u8]> {
    sorted
        .windows(2)
        .filter(|pair| pair[0] == pair[1])
        .map(|pair| pair[1])
        .min_by_key(|token| token.as_ptr())
}

/// Type numbers of GGUF.
const U32: u32 = 4;
const I32: u32 = 5;
const BOOL: u32 = 7;
const TEXT: u32 = 8;

/// Refuses a key that has another type than llama.cpp reads: it opens no such file, and what the key means would be a guess.
fn check_types(file: &GgufFile) -> Result<()> {
    let named = IDS
        .iter()
        .filter(|(_, word)| !BESIDE_THE_TEXT.contains(word))
        .map(|(key, _)| *key);
    let ids: HashSet<&str> = named.chain(FILL_IDS.into_iter().flatten()).collect();
    for (key, value) in &file.metadata {
        let own = key.strip_prefix("tokenizer.ggml.");
        let (expected, fits) = match own {
            _ if ids.contains(key.as_str()) => ("u32", value.kind() == U32),
            Some(
                "add_bos_token"
                | "add_eos_token"
                | "add_sep_token"
                | "add_space_prefix"
                | "remove_extra_whitespaces",
            ) => ("bool", value.kind() == BOOL),
            Some("pre") => ("a text", value.kind() == TEXT),
            None if key == "tokenizer.chat_template" || key.starts_with(NAMED_TEMPLATE) => {
                ("a text", value.kind() == TEXT)
            }
            Some("tokens" | "merges") => (
                "an array of texts",
                value.array().is_some_and(|(kind, _)| kind == TEXT),
            ),
            Some("token_type") => (
                "an array of i32",
                value.array().is_some_and(|(kind, _)| kind == I32),
            ),
            _ => continue,
        };
        if !fits {
            let refusal = refuse(word!("tokenizer.key.type"))
                .subject(key)
                .expected(expected)
                .found(type_name(value));
            return Err(refusal.hint(TOKENIZER_JSON_SERVES).into());
        }
    }
    Ok(())
}

/// Returns the name of a value's type.
fn type_name(value: &GgufValue) -> String {
    const NAMES: [&str; 13] = [
        "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "a text", "an array", "u64", "i64",
        "f64",
    ];
    let name = |kind: u32| {
        usize::try_from(kind)
            .ok()
            .and_then(|kind| NAMES.get(kind))
            .copied()
            .unwrap_or("another type")
    };
    match value.array() {
        Some((kind, _)) => format!(
            "an array of {}",
            if kind == TEXT { "texts" } else { name(kind) }
        ),
        None => name(value.kind()).to_owned(),
    }
}

fn check_lists(file: &GgufFile, tokens: &[&[u8]]) -> Result<()> {
    let count = tokens.len() as u64;
    if let Some(scores) = file.get("tokenizer.ggml.scores") {
        match scores.array() {
            Some((6, found)) if found == count => {}
            Some((6, found)) => {
                return Err(refuse(word!("tokenizer.scores.length"))
                    .expected(count)
                    .found(found)
                    .into());
            }
            _ => {
                return Err(refuse(word!("tokenizer.scores.type"))
                    .expected("an array of f32")
                    .into());
            }
        }
    }
    if let Some(types) = file.get("tokenizer.ggml.token_type") {
        let found = types.array().map_or(0, |(_, found)| found);
        if found != count || types.counts().is_none() {
            return Err(refuse(word!("tokenizer.types.length"))
                .expected(count)
                .found(found)
                .into());
        }
    }
    Ok(())
}

fn is_byte_form(token: &[u8]) -> bool {
    matches!(token, [b'<', b'0', b'x', a, b, b'>'] if [a, b].into_iter().all(|d| matches!(d, b'0'..=b'9' | b'A'..=b'F')))
}

fn check_merges(file: &GgufFile, sorted: &[&[u8]]) -> Result<()> {
    let merges = file
        .get("tokenizer.ggml.merges")
        .and_then(GgufValue::texts)
        .ok_or_else(|| refuse(word!("tokenizer.merges.missing")))?;
    for merge in merges {
        // The separator is the first space after the first byte: a part is never empty.
        let cut = merge
            .iter()
            .skip(1)
            .position(|&b| b == b' ')
            .map(|at| at + 1);
        let is_token = |part: &[u8]| sorted.binary_search(&part).is_ok();
        let known = cut.is_some_and(|at| is_token(&merge[..at]) && is_token(&merge[at + 1..]));
        if !known {
            return Err(refuse(word!("tokenizer.merge.unknown-part"))
                .subject(&String::from_utf8_lossy(merge))
                .into());
        }
    }
    Ok(())
}
