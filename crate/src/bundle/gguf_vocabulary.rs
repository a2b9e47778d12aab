//! Writes a tokenizer as the metadata of a GGUF file: the reverse of `gguf_tokenizer.rs`.

use super::gguf_tokenizer::{ESCAPED, NAMED_TEMPLATE, NONE};
use crate::error::Result;
use crate::formats::GgufValue;
use crate::tokenizer::{PartsModel, Tokenizer, TokenizerParts};

const MODEL: &str = "tokenizer.ggml.model";

/// Returns keys and values of a tokenizer for a model with `rows` rows in its embedding. Without a tokenizer they state that there is none, as
/// llama.cpp requires. A tokenizer that GGUF cannot hold is `export.gguf.tokenizer`.
pub(crate) fn tokenizer_keys(
    tokenizer: Option<&Tokenizer>,
    rows: usize,
) -> Result<Vec<(String, GgufValue)>> {
    match tokenizer {
        Some(tokenizer) => Ok(keys_of(&tokenizer.to_parts(rows)?)),
        None => Ok(vec![(MODEL.to_string(), GgufValue::of_text(NONE))]),
    }
}

fn keys_of(parts: &TokenizerParts) -> Vec<(String, GgufValue)> {
    let mut keys = Vec::new();
    let mut put = |key: &str, value: GgufValue| keys.push((key.to_string(), value));
    let model = match &parts.model {
        PartsModel::ByteLevelBpe { .. } => "gpt2",
        PartsModel::SentencePiece { .. } => "llama",
        PartsModel::Characters => "rwkv",
    };
    put(MODEL, GgufValue::of_text(model));
    if let PartsModel::ByteLevelBpe { pre, .. } = &parts.model {
        put("tokenizer.ggml.pre", GgufValue::of_text(pre));
    }
    let escapes = parts.model == PartsModel::Characters;
    let tokens: Vec<&str> = parts
        .tokens
        .iter()
        .map(|token| {
            if escapes && token == "\\" {
                ESCAPED
            } else {
                token.as_str()
            }
        })
        .collect();
    put("tokenizer.ggml.tokens", GgufValue::of_texts(&tokens));
    match &parts.model {
        PartsModel::SentencePiece { scores, .. } => {
            put("tokenizer.ggml.scores", GgufValue::of_f32s(scores))
        }
        PartsModel::ByteLevelBpe { .. } | PartsModel::Characters => {}
    }
    put(
        "tokenizer.ggml.token_type",
        GgufValue::of_i32s(&parts.types),
    );
    if let PartsModel::ByteLevelBpe { merges, .. } = &parts.model {
        put("tokenizer.ggml.merges", GgufValue::of_texts(merges));
    }
    let ends = ["eos", "eot", "eom"].into_iter().zip(parts.named_ends());
    let named = [
        ("bos", parts.bos),
        ("unknown", parts.unk),
        ("padding", parts.pad),
    ];
    for (name, id) in named
        .into_iter()
        .filter_map(|(name, id)| Some((name, id?)))
        .chain(ends)
    {
        put(
            &format!("tokenizer.ggml.{name}_token_id"),
            GgufValue::of_u32(id),
        );
    }
    let flags = [
        ("add_bos_token", parts.add_bos),
        ("add_eos_token", parts.add_eos),
    ];
    for (name, flag) in flags
        .into_iter()
        .filter_map(|(name, flag)| Some((name, flag?)))
    {
        put(&format!("tokenizer.ggml.{name}"), GgufValue::of_bool(flag));
    }
    if let PartsModel::SentencePiece {
        add_space_prefix, ..
    } = &parts.model
    {
        put(
            "tokenizer.ggml.add_space_prefix",
            GgufValue::of_bool(*add_space_prefix),
        );
    }
    if let Some(template) = &parts.chat_template {
        put("tokenizer.chat_template", GgufValue::of_text(template));
    }
    if !parts.named_templates.is_empty() {
        let names: Vec<&str> = parts
            .named_templates
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        put("tokenizer.chat_templates", GgufValue::of_texts(&names));
        parts.named_templates.iter().for_each(|(name, text)| {
            put(&format!("{NAMED_TEMPLATE}{name}"), GgufValue::of_text(text))
        });
    }
    keys
}
