//! Reads the vocabulary of a GGUF file, with what llama.cpp takes where the file says nothing.

use crate::error::{Error, Refusal, Result, Warning, Word, word};
use crate::formats::{GgufFile, GgufValue};
use crate::tokenizer::{FILLS, GgufIds, PartsModel, TOKENIZER_JSON_SERVES, TokenizerParts};

const NORMAL: i32 = 1;
const UNUSED: u64 = 5;

/// Value of the model key in a file without a tokenizer, as llama.cpp expects it.
pub(super) const NONE: &str = "none";

/// Ids that the metadata may state: key, and the word that messages use.
pub(super) const IDS: [(&str, &str); 10] = [
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

/// Ids of tokens around code that is to be filled in: the key, and the one that files had before.
pub(super) const FILL_IDS: [[&str; 2]; FILLS] = [
    [
        "tokenizer.ggml.fim_pre_token_id",
        "tokenizer.ggml.prefix_token_id",
    ],
    [
        "tokenizer.ggml.fim_suf_token_id",
        "tokenizer.ggml.suffix_token_id",
    ],
    [
        "tokenizer.ggml.fim_mid_token_id",
        "tokenizer.ggml.middle_token_id",
    ],
    ["tokenizer.ggml.fim_pad_token_id", ""],
    ["tokenizer.ggml.fim_rep_token_id", ""],
    ["tokenizer.ggml.fim_sep_token_id", ""],
];

pub(super) fn refuse(code: Word) -> Refusal {
    Refusal::new(code).stage("bind")
}

/// Returns the id that pads a text, if a token has it.
pub(super) fn pad_id(file: &GgufFile) -> Option<u32> {
    let count = file
        .get("tokenizer.ggml.tokens")
        .and_then(GgufValue::array)
        .map_or(0, |(_, count)| count);
    let id = file
        .get("tokenizer.ggml.padding_token_id")
        .and_then(GgufValue::count)
        .filter(|id| *id < count);
    id.and_then(|id| u32::try_from(id).ok())
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
    for key in [
        "tokenizer.ggml.eos_token_id",
        "tokenizer.ggml.eot_token_id",
        "tokenizer.ggml.eom_token_id",
    ] {
        let id = file
            .get(key)
            .and_then(GgufValue::count)
            .and_then(|id| u32::try_from(id).ok());
        ids.extend(id.filter(|id| !ids.contains(id)));
    }
    ids
}

/// Returns the vocabulary of metadata that passed [`check_tokenizer`]; `None` if the file has none.
pub(super) fn tokenizer_parts(file: &GgufFile, name: &str) -> Result<Option<TokenizerParts>> {
    let Some(model) = file.get("tokenizer.ggml.model").and_then(GgufValue::text) else {
        return Ok(None);
    };
    let utf8 = |list: Vec<&[u8]>, what: &str| {
        let texts = list
            .into_iter()
            .map(|text| std::str::from_utf8(text).map(str::to_string))
            .collect::<std::result::Result<Vec<_>, _>>();
        texts.map_err(|e| Error::Tokenizer {
            what: what.to_string(),
            reason: e.to_string(),
        })
    };
    let texts = |key: &str| {
        utf8(
            file.get(key).and_then(GgufValue::texts).unwrap_or_default(),
            key,
        )
    };
    let flag = |key: &str| file.get(key).and_then(GgufValue::bool);
    let id = |key: &str| {
        file.get(key)
            .and_then(GgufValue::count)
            .and_then(|id| u32::try_from(id).ok())
    };
    let unsupported = || {
        let refusal = refuse(word!("tokenizer.model.unsupported"))
            .of(name)
            .expected("gpt2, llama, rwkv of characters")
            .found(model);
        refusal.hint(TOKENIZER_JSON_SERVES)
    };
    match model {
        NONE => return Ok(None),
        "gpt2" | "llama" | "rwkv" => {}
        _ => return Err(unsupported().into()),
    }
    let mut tokens = texts("tokenizer.ggml.tokens")?;
    for (id, token) in tokens
        .iter_mut()
        .enumerate()
        .filter(|(_, token)| token.is_empty())
    {
        // As in llama.cpp.
        *token = format!("[EMPTY_{id}]");
    }
    let types = file
        .get("tokenizer.ggml.token_type")
        .and_then(GgufValue::counts)
        .unwrap_or_default();
    let rule = match model {
        "gpt2" => {
            let pre = file
                .get("tokenizer.ggml.pre")
                .and_then(GgufValue::text)
                .unwrap_or("absent");
            PartsModel::ByteLevelBpe {
                merges: texts("tokenizer.ggml.merges")?,
                pre: pre.to_string(),
            }
        }
        "llama" => PartsModel::SentencePiece {
            scores: file
                .get("tokenizer.ggml.scores")
                .and_then(GgufValue::floats)
                .unwrap_or_default(),
            add_space_prefix: flag("tokenizer.ggml.add_space_prefix").unwrap_or(true),
        },
        _ if tokens
            .iter()
            .enumerate()
            .all(|(id, token)| types.get(id) == Some(&UNUSED) || is_character(token)) =>
        {
            tokens
                .iter_mut()
                .filter(|token| token.as_str() == ESCAPED)
                .for_each(|token| token.truncate(1));
            PartsModel::Characters
        }
        _ => return Err(unsupported().into()),
    };
    let stated = GgufIds {
        bos: id("tokenizer.ggml.bos_token_id"),
        eos: id("tokenizer.ggml.eos_token_id"),
        turns: ["tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"].map(id),
        unk: id("tokenizer.ggml.unknown_token_id"),
        fills: FILL_IDS.map(|keys| keys.into_iter().find_map(id)),
        title: file
            .get("general.name")
            .and_then(GgufValue::text)
            .unwrap_or_default()
            .to_string(),
    };
    let parts = TokenizerParts {
        model: rule,
        tokens,
        types: types
            .into_iter()
            .map(|kind| i32::try_from(kind).unwrap_or(0))
            .collect(),
        bos: None,
        eos: Vec::new(),
        pad: pad_id(file),
        unk: None,
        add_bos: flag("tokenizer.ggml.add_bos_token"),
        add_eos: flag("tokenizer.ggml.add_eos_token"),
        chat_template: file
            .get("tokenizer.chat_template")
            .or_else(|| file.get("tokenizer.chat_template.default"))
            .and_then(GgufValue::text)
            .map(str::to_string),
        named_templates: named_templates(file),
        lstrip: Vec::new(),
        rstrip: Vec::new(),
    };
    Ok(Some(parts.completed(&stated)))
}

/// Returns a warning if the file names no end of a text, and llama.cpp takes a token for it that is a part of texts.
pub(super) fn default_end(file: &GgufFile, parts: &TokenizerParts) -> Option<Warning> {
    let unnamed = file.get("tokenizer.ggml.eos_token_id").is_none();
    let end = parts
        .eos
        .first()
        .map(|id| *id as usize)
        .filter(|id| unnamed && parts.types.get(*id).is_none_or(|kind| *kind == NORMAL))?;
    parts.tokens.get(end).map(|token| {
        Warning::new(
            word!("tokenizer.end.default"),
            &format!("{token} (id {end})"),
        )
    })
}

/// Prefix of the keys of named chat templates.
pub(super) const NAMED_TEMPLATE: &str = "tokenizer.chat_template.";

/// Returns the chat templates by name, declared or not.
fn named_templates(file: &GgufFile) -> Vec<(String, String)> {
    let named = |(key, value): &(String, GgufValue)| {
        Some((
            key.strip_prefix(NAMED_TEMPLATE)?.to_string(),
            value.text()?.to_string(),
        ))
    };
    file.metadata
        .iter()
        .filter_map(named)
        .filter(|(name, _)| name != "default")
        .collect()
}
