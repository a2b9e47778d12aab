//! Checks the tokenizer metadata of GGUF (crate/FORMATS.md, "Tokenizer of a GGUF") and reads the vocabulary for the tokenizer.

use std::collections::HashSet;

use crate::error::{Error, Refusal, Result, Word, word};
use crate::formats::{GgufFile, GgufValue, Warning};
use crate::tokenizer::{PartsModel, TOKENIZER_JSON_SERVES, TokenizerParts};

const KNOWN_MODELS: [&str; 6] = ["gpt2", "llama", "bert", "t5", "gemma4", "rwkv"];
const UNUSED: u64 = 5;
const BYTE: u64 = 6;

/// Value of the model key in a file without a tokenizer, as llama.cpp expects it.
pub(super) const NONE: &str = "none";

/// Ids that the metadata may state: key, and the word that messages use.
const IDS: [(&str, &str); 10] = [
    ("tokenizer.ggml.bos_token_id", "bos"),
    ("tokenizer.ggml.eos_token_id", "eos"),
    ("tokenizer.ggml.eot_token_id", "eot"),
    ("tokenizer.ggml.eom_token_id", "eom"),
    ("tokenizer.ggml.unknown_token_id", "unk"),
    ("tokenizer.ggml.padding_token_id", "pad"),
    ("tokenizer.ggml.seperator_token_id", "sep"),
    ("tokenizer.ggml.separator_token_id", "sep"),
    ("tokenizer.ggml.cls_token_id", "cls"),
    ("tokenizer.ggml.mask_token_id", "mask"),
];

/// Words of [`IDS`] whose ids no text needs.
const BESIDE_THE_TEXT: [&str; 4] = ["pad", "sep", "cls", "mask"];

fn refuse(code: Word) -> Refusal {
    Refusal::new(code).stage("bind")
}

/// Refuses tokenizer metadata that contradict themselves; a file without any is accepted. Returns warnings about ids that no token has, of
/// roles that no text needs.
pub(super) fn check_tokenizer(file: &GgufFile) -> Result<Vec<Warning>> {
    if !file.metadata.iter().any(|(key, _)| key.starts_with("tokenizer.ggml.")) {
        return Ok(Vec::new());
    }
    let model = file.get("tokenizer.ggml.model").and_then(GgufValue::text).ok_or_else(|| refuse(word!("tokenizer.model.missing")))?;
    if model == NONE {
        return Ok(Vec::new());
    }
    if !KNOWN_MODELS.contains(&model) {
        let refusal = refuse(word!("tokenizer.model.unsupported")).expected(KNOWN_MODELS.join(", ")).found(model);
        return Err(refusal.hint(TOKENIZER_JSON_SERVES).into());
    }
    let tokens = file.get("tokenizer.ggml.tokens").and_then(GgufValue::texts).ok_or_else(|| refuse(word!("tokenizer.tokens.missing")))?;
    check_lists(file, &tokens)?;
    let sorted = sorted(&tokens);
    if let Some(twice) = first_twice(&sorted) {
        return Err(refuse(word!("tokenizer.token.duplicate")).subject(&String::from_utf8_lossy(twice)).into());
    }
    let types = file.get("tokenizer.ggml.token_type").and_then(GgufValue::counts).unwrap_or_default();
    let bytes = tokens.iter().zip(&types).filter(|(_, kind)| **kind == BYTE);
    if let Some((token, _)) = bytes.into_iter().find(|(token, _)| !is_byte_form(token)) {
        return Err(refuse(word!("tokenizer.token.byte-form")).expected("<0x00> to <0xFF>").found(String::from_utf8_lossy(token)).into());
    }
    if model == "gpt2" {
        check_merges(file, &sorted)?;
    }
    let mut warnings = Vec::new();
    for (key, word) in IDS {
        let wrong = file.get(key).filter(|value| value.count().is_none_or(|id| id >= tokens.len() as u64));
        if let Some(value) = wrong {
            if BESIDE_THE_TEXT.contains(&word) {
                warnings.push(Warning::new(word!("tokenizer.id.unused"), word));
                continue;
            }
            let found = value.count().map_or_else(|| "no count".to_string(), |id| id.to_string());
            return Err(refuse(word!("tokenizer.id.range"))
                .subject(word)
                .expected(format!("less than {}", tokens.len()))
                .found(found)
                .into());
        }
    }
    let templates = file.get("tokenizer.chat_templates").and_then(GgufValue::texts).unwrap_or_default();
    let unnamed = file.get("tokenizer.chat_template").is_some();
    let named: HashSet<&[u8]> = file.metadata.iter().filter_map(|(key, _)| key.strip_prefix(NAMED_TEMPLATE)).map(str::as_bytes).collect();
    let is_there = |template: &&[u8]| named.contains(template) || unnamed && *template == b"default";
    match templates.into_iter().find(|template| !is_there(template)) {
        Some(absent) => Err(refuse(word!("tokenizer.template.missing")).subject(&String::from_utf8_lossy(absent)).into()),
        None => Ok(warnings),
    }
}

/// Returns the id that pads a text, if a token has it.
pub(super) fn pad_id(file: &GgufFile) -> Option<u32> {
    let count = file.get("tokenizer.ggml.tokens").and_then(GgufValue::array).map_or(0, |(_, count)| count);
    let id = file.get("tokenizer.ggml.padding_token_id").and_then(GgufValue::count).filter(|id| *id < count);
    id.and_then(|id| u32::try_from(id).ok())
}

/// Returns the tokens sorted, equal ones in the order of the file.
fn sorted<'a>(tokens: &[&'a [u8]]) -> Vec<&'a [u8]> {
    let mut sorted = tokens.to_vec();
    sorted.sort_unstable_by_key(|token| (*token, token.as_ptr()));
    sorted
}

/// Returns the first token in the file that repeats an earlier one.
fn first_twice<'a>(sorted: &[&'a [u8]]) -> Option<&'a [u8]> {
    sorted.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[1]).min_by_key(|token| token.as_ptr())
}

fn check_lists(file: &GgufFile, tokens: &[&[u8]]) -> Result<()> {
    let count = tokens.len() as u64;
    if let Some(scores) = file.get("tokenizer.ggml.scores") {
        match scores.array() {
            Some((6, found)) if found == count => {}
            Some((6, found)) => return Err(refuse(word!("tokenizer.scores.length")).expected(count).found(found).into()),
            _ => return Err(refuse(word!("tokenizer.scores.type")).expected("an array of f32").into()),
        }
    }
    if let Some(types) = file.get("tokenizer.ggml.token_type") {
        let found = types.array().map_or(0, |(_, found)| found);
        if found != count || types.counts().is_none() {
            return Err(refuse(word!("tokenizer.types.length")).expected(count).found(found).into());
        }
    }
    Ok(())
}

fn is_byte_form(token: &[u8]) -> bool {
    matches!(token, [b'<', b'0', b'x', a, b, b'>'] if [a, b].into_iter().all(|d| matches!(d, b'0'..=b'9' | b'A'..=b'F')))
}

fn check_merges(file: &GgufFile, sorted: &[&[u8]]) -> Result<()> {
    let merges = file.get("tokenizer.ggml.merges").and_then(GgufValue::texts).ok_or_else(|| refuse(word!("tokenizer.merges.missing")))?;
    for merge in merges {
        // The separator is the first space after the first byte: a part is never empty.
        let cut = merge.iter().skip(1).position(|&b| b == b' ').map(|at| at + 1);
        let is_token = |part: &[u8]| sorted.binary_search(&part).is_ok();
        let known = cut.is_some_and(|at| is_token(&merge[..at]) && is_token(&merge[at + 1..]));
        if !known {
            return Err(refuse(word!("tokenizer.merge.unknown-part")).subject(&String::from_utf8_lossy(merge)).into());
        }
    }
    Ok(())
}

/// Backslash in the spelling of a vocabulary of `rwkv`, where it begins an escape.
pub(super) const ESCAPED: &str = "\\\\";

/// Returns whether a token of `rwkv` is one character in the spelling that tabtune writes.
fn is_character(token: &str) -> bool {
    token == ESCAPED || token != "\\" && token.chars().count() == 1
}

/// Returns the ids that end a text or a turn: eos, eot, eom without repeats.
pub(super) fn end_ids(file: &GgufFile) -> Vec<u32> {
    let mut ids = Vec::new();
    for key in ["tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"] {
        let id = file.get(key).and_then(GgufValue::count).and_then(|id| u32::try_from(id).ok());
        ids.extend(id.filter(|id| !ids.contains(id)));
    }
    ids
}

/// Returns the vocabulary of metadata that passed [`check_tokenizer`]; `None` if the file has none.
pub(super) fn tokenizer_parts(file: &GgufFile, name: &str) -> Result<Option<TokenizerParts>> {
    let Some(model) = file.get("tokenizer.ggml.model").and_then(GgufValue::text) else { return Ok(None) };
    let utf8 = |list: Vec<&[u8]>, what: &str| {
        let texts = list.into_iter().map(|text| std::str::from_utf8(text).map(str::to_string)).collect::<std::result::Result<Vec<_>, _>>();
        texts.map_err(|e| Error::Tokenizer { what: what.to_string(), reason: e.to_string() })
    };
    let texts = |key: &str| utf8(file.get(key).and_then(GgufValue::texts).unwrap_or_default(), key);
    let flag = |key: &str| file.get(key).and_then(GgufValue::bool);
    let id = |key: &str| file.get(key).and_then(GgufValue::count).and_then(|id| u32::try_from(id).ok());
    let unsupported = || {
        let refusal = refuse(word!("tokenizer.model.unsupported")).of(name).expected("gpt2, llama, rwkv of characters").found(model);
        refusal.hint(TOKENIZER_JSON_SERVES)
    };
    match model {
        NONE => return Ok(None),
        "gpt2" | "llama" | "rwkv" => {}
        _ => return Err(unsupported().into()),
    }
    let mut tokens = texts("tokenizer.ggml.tokens")?;
    let types = file.get("tokenizer.ggml.token_type").and_then(GgufValue::counts).unwrap_or_default();
    let rule = match model {
        "gpt2" => {
            let pre = file.get("tokenizer.ggml.pre").and_then(GgufValue::text).unwrap_or("absent");
            PartsModel::ByteLevelBpe { merges: texts("tokenizer.ggml.merges")?, pre: pre.to_string() }
        }
        "llama" => PartsModel::SentencePiece {
            scores: file.get("tokenizer.ggml.scores").and_then(GgufValue::floats).unwrap_or_default(),
            add_space_prefix: flag("tokenizer.ggml.add_space_prefix").unwrap_or(true),
        },
        _ if tokens.iter().enumerate().all(|(id, token)| types.get(id) == Some(&UNUSED) || is_character(token)) => {
            tokens.iter_mut().filter(|token| token.as_str() == ESCAPED).for_each(|token| token.truncate(1));
            PartsModel::Characters
        }
        _ => return Err(unsupported().into()),
    };
    Ok(Some(TokenizerParts {
        model: rule,
        tokens,
        types: types.into_iter().map(|kind| i32::try_from(kind).unwrap_or(0)).collect(),
        bos: id("tokenizer.ggml.bos_token_id"),
        eos: end_ids(file),
        pad: pad_id(file),
        unk: id("tokenizer.ggml.unknown_token_id"),
        add_bos: flag("tokenizer.ggml.add_bos_token"),
        add_eos: flag("tokenizer.ggml.add_eos_token"),
        chat_template: file
            .get("tokenizer.chat_template")
            .or_else(|| file.get("tokenizer.chat_template.default"))
            .and_then(GgufValue::text)
            .map(str::to_string),
        named_templates: named_templates(file),
    }))
}

/// Prefix of the keys of named chat templates.
pub(super) const NAMED_TEMPLATE: &str = "tokenizer.chat_template.";

/// Returns the chat templates by name, declared or not.
fn named_templates(file: &GgufFile) -> Vec<(String, String)> {
    let named = |(key, value): &(String, GgufValue)| Some((key.strip_prefix(NAMED_TEMPLATE)?.to_string(), value.text()?.to_string()));
    file.metadata.iter().filter_map(named).filter(|(name, _)| name != "default").collect()
}
