//! Checks the tokenizer metadata of GGUF (crate/FORMATS.md, "Tokenizer of a GGUF").

use std::collections::HashSet;

use super::gguf_tokenizer::refuse;
use super::gguf_tokenizer::{FILL_IDS, IDS, Metadata, NAMED_TEMPLATE, NONE, PREFIX, TEMPLATE};
use crate::error::{Error, Refusal, Result, Warning, Word, word};
use crate::formats::{GgufFile, GgufValue};
use crate::tokenizer::TOKENIZER_JSON_SERVES;

const KNOWN_MODELS: [&str; 6] = ["gpt2", "llama", "bert", "t5", "gemma4", "rwkv"];
/// Type of a token that is one byte.
const BYTE: u64 = 6;

/// Words of [`IDS`] whose ids no text needs.
const BESIDE_THE_TEXT: [&str; 4] = ["pad", "sep", "cls", "mask"];

/// Refuses tokenizer metadata that contradict themselves; a file without any is accepted. The warnings are about ids that no token has, of
/// roles that no text needs.
pub(super) fn check_tokenizer(file: &GgufFile) -> Result<Vec<Warning>> {
    let metadata = Metadata(file);
    if metadata.entries().next().is_none() {
        return Ok(Vec::new());
    }
    let model = metadata
        .model()
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
    let tokens = metadata
        .get("tokens")
        .and_then(GgufValue::texts)
        .ok_or_else(|| refuse(word!("tokenizer.tokens.missing")))?;
    check_lists(metadata, tokens.len() as u64)?;
    let sorted = sorted(&tokens);
    if let Some(twice) = first_twice(&sorted) {
        return Err(about(word!("tokenizer.token.duplicate"), twice).into());
    }
    let mut typed = tokens.iter().zip(metadata.types());
    if let Some((token, _)) = typed.find(|(token, kind)| *kind == BYTE && !is_byte_form(token)) {
        return Err(refuse(word!("tokenizer.token.byte-form"))
            .expected("<0x00> to <0xFF>")
            .found(String::from_utf8_lossy(token))
            .into());
    }
    if model == "gpt2" {
        check_merges(metadata, &sorted)?;
    }
    let warnings = check_ids(metadata, tokens.len() as u64)?;
    check_templates(file)?;
    Ok(warnings)
}

/// Creates a refusal of a text of the file.
fn about(code: Word, text: &[u8]) -> Refusal {
    refuse(code).subject(&String::from_utf8_lossy(text))
}

/// Sorts the tokens, equal ones in the order of the file.
fn sorted<'a>(tokens: &[&'a [u8]]) -> Vec<&'a [u8]> {
    // Empty tokens get names of their own.
    let mut sorted = tokens.to_vec();
    sorted.retain(|token| !token.is_empty());
    sorted.sort_unstable_by_key(|token| (*token, token.as_ptr()));
    sorted
}

/// Finds the first token in the file that repeats an earlier one.
fn first_twice<'a>(sorted: &[&'a [u8]]) -> Option<&'a [u8]> {
    let pairs = sorted.windows(2).filter(|pair| pair[0] == pair[1]);
    pairs.map(|pair| pair[1]).min_by_key(|token| token.as_ptr())
}

/// Refuses an id that no token has, and warns about it if no text needs its role.
fn check_ids(metadata: Metadata<'_>, count: u64) -> Result<Vec<Warning>> {
    let mut warnings = Vec::new();
    for (role, word) in IDS {
        let Some(id) = metadata.stated_id(role).map(GgufValue::count) else {
            continue;
        };
        if id.is_some_and(|id| id < count) {
            continue;
        }
        if BESIDE_THE_TEXT.contains(&word) {
            warnings.push(Warning::new(word!("tokenizer.id.unused"), word));
            continue;
        }
        return Err(refuse(word!("tokenizer.id.range"))
            .subject(word)
            .expected(format!("less than {count}"))
            .found(id.map_or("no count".to_string(), |id| id.to_string()))
            .into());
    }
    Ok(warnings)
}

/// Refuses a list of chat templates of which one is absent.
fn check_templates(file: &GgufFile) -> Result<()> {
    let declared = file
        .get("tokenizer.chat_templates")
        .and_then(GgufValue::texts);
    let keys = file.metadata.iter().map(|(key, _)| key.as_str());
    let named: HashSet<&[u8]> = keys
        .filter_map(|key| match key {
            TEMPLATE => Some("default"),
            key => key.strip_prefix(NAMED_TEMPLATE),
        })
        .map(str::as_bytes)
        .collect();
    let mut declared = declared.unwrap_or_default().into_iter();
    match declared.find(|name| !named.contains(name)) {
        Some(absent) => Err(about(word!("tokenizer.template.missing"), absent).into()),
        None => Ok(()),
    }
}

/// Type numbers of GGUF.
const U32: u32 = 4;
const I32: u32 = 5;
const F32: u32 = 6;
const BOOL: u32 = 7;
const TEXT: u32 = 8;

/// Refuses a key that has another type than llama.cpp reads: it opens no such file, and what the key means would be a guess.
fn check_types(file: &GgufFile) -> Result<()> {
    let needed = IDS
        .iter()
        .filter(|(_, word)| !BESIDE_THE_TEXT.contains(word))
        .map(|(role, _)| role);
    let roles: HashSet<&str> = needed
        .chain(FILL_IDS.into_iter().flatten())
        .copied()
        .collect();
    for (key, value) in &file.metadata {
        let own = key.strip_prefix(PREFIX);
        let role = own.and_then(|own| own.strip_suffix("_token_id"));
        let lists = |kind: u32| value.array().is_some_and(|(item, _)| item == kind);
        let (expected, fits) = match own {
            _ if role.is_some_and(|role| roles.contains(role)) => ("u32", value.kind() == U32),
            Some(
                "add_bos_token"
                | "add_eos_token"
                | "add_sep_token"
                | "add_space_prefix"
                | "remove_extra_whitespaces",
            ) => ("bool", value.kind() == BOOL),
            Some("pre") => ("a text", value.kind() == TEXT),
            None if key == TEMPLATE || key.starts_with(NAMED_TEMPLATE) => {
                ("a text", value.kind() == TEXT)
            }
            Some("tokens" | "merges") => ("an array of texts", lists(TEXT)),
            Some("token_type") => ("an array of i32", lists(I32)),
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

/// Names the type of a value.
fn type_name(value: &GgufValue) -> String {
    const NAMES: [&str; 13] = [
        "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "a text", "an array", "u64", "i64",
        "f64",
    ];
    let name = |kind: u32| NAMES.get(kind as usize).unwrap_or(&"another type");
    match value.array() {
        Some((TEXT, _)) => "an array of texts".to_string(),
        Some((kind, _)) => format!("an array of {}", name(kind)),
        None => name(value.kind()).to_string(),
    }
}

/// Refuses scores or types that are not those of `count` tokens.
fn check_lists(metadata: Metadata<'_>, count: u64) -> Result<()> {
    let check = |code: Word, found: u64, fits: bool| match fits {
        true => Ok(()),
        false => Err(Error::from(refuse(code).expected(count).found(found))),
    };
    if let Some(scores) = metadata.get("scores") {
        let Some((F32, found)) = scores.array() else {
            let refusal = refuse(word!("tokenizer.scores.type"));
            return Err(refusal.expected("an array of f32").into());
        };
        check(word!("tokenizer.scores.length"), found, found == count)?;
    }
    if let Some(types) = metadata.get("token_type") {
        let found = types.array().map_or(0, |(_, found)| found);
        let fits = found == count && types.counts().is_some();
        check(word!("tokenizer.types.length"), found, fits)?;
    }
    Ok(())
}

fn is_byte_form(token: &[u8]) -> bool {
    let is_digit = |d: &u8| matches!(d, b'0'..=b'9' | b'A'..=b'F');
    matches!(token, [b'<', b'0', b'x', a, b, b'>'] if is_digit(a) && is_digit(b))
}

/// Refuses a merge whose parts are no tokens.
fn check_merges(metadata: Metadata<'_>, sorted: &[&[u8]]) -> Result<()> {
    let merges = metadata
        .get("merges")
        .and_then(GgufValue::texts)
        .ok_or_else(|| refuse(word!("tokenizer.merges.missing")))?;
    let is_token = |part: &[u8]| sorted.binary_search(&part).is_ok();
    for merge in merges {
        // The separator is the first space after the first byte: a part is never empty.
        let space = merge.iter().skip(1).position(|&b| b == b' ');
        if !space.is_some_and(|at| is_token(&merge[..at + 1]) && is_token(&merge[at + 2..])) {
            return Err(about(word!("tokenizer.merge.unknown-part"), merge).into());
        }
    }
    Ok(())
}
