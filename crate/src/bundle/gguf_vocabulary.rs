//! Writes a tokenizer as the metadata of a GGUF file: the reverse of `gguf_tokenizer.rs`.

use super::gguf_tokenizer::{ESCAPED, NAMED_TEMPLATE, NONE, PREFIX, TEMPLATE};
use crate::error::Result;
use crate::formats::GgufValue;
use crate::tokenizer::{PartsModel, Tokenizer, TokenizerParts};

/// Keys and values of a tokenizer for a model with `rows` rows in its embedding. Without a tokenizer they state that there is none, as
/// llama.cpp requires. A tokenizer that GGUF cannot hold is `export.gguf.tokenizer`.
pub(crate) fn tokenizer_keys(
    tokenizer: Option<&Tokenizer>,
    rows: usize,
) -> Result<Vec<(String, GgufValue)>> {
    match tokenizer {
        Some(tokenizer) => Ok(keys_of(&tokenizer.to_parts(rows)?)),
        None => Ok(vec![(format!("{PREFIX}model"), GgufValue::of_text(NONE))]),
    }
}

fn keys_of(parts: &TokenizerParts) -> Vec<(String, GgufValue)> {
    let mut keys = Vec::new();
    let mut put = |key: &str, value: GgufValue| keys.push((format!("{PREFIX}{key}"), value));
    let model = match &parts.model {
        PartsModel::ByteLevelBpe { .. } => "gpt2",
        PartsModel::SentencePiece { .. } => "llama",
        PartsModel::Characters => "rwkv",
    };
    put("model", GgufValue::of_text(model));
    if let PartsModel::ByteLevelBpe { pre, .. } = &parts.model {
        put("pre", GgufValue::of_text(pre));
    }
    let tokens = parts.tokens.iter().map(|token| match token.as_str() {
        "\\" if parts.model == PartsModel::Characters => ESCAPED,
        token => token,
    });
    put("tokens", GgufValue::of_texts(&tokens.collect::<Vec<_>>()));
    if let PartsModel::SentencePiece { scores, .. } = &parts.model {
        put("scores", GgufValue::of_f32s(scores));
    }
    put("token_type", GgufValue::of_i32s(&parts.types));
    if let PartsModel::ByteLevelBpe { merges, .. } = &parts.model {
        put("merges", GgufValue::of_texts(merges));
    }
    let named = [
        ("bos", parts.bos),
        ("unknown", parts.unk),
        ("padding", parts.pad),
    ];
    let ends = parts.named_ends().into_iter().map(Some);
    for (role, id) in named
        .into_iter()
        .chain(["eos", "eot", "eom"].into_iter().zip(ends))
    {
        if let Some(id) = id {
            put(&format!("{role}_token_id"), GgufValue::of_u32(id));
        }
    }
    let mut flags = vec![
        ("add_bos_token", parts.add_bos),
        ("add_eos_token", parts.add_eos),
    ];
    if let PartsModel::SentencePiece {
        add_space_prefix, ..
    } = parts.model
    {
        flags.push(("add_space_prefix", Some(add_space_prefix)));
    }
    for (name, flag) in flags {
        if let Some(flag) = flag {
            put(name, GgufValue::of_bool(flag));
        }
    }
    let mut put = |key: String, value: GgufValue| keys.push((key, value));
    if let Some(template) = &parts.chat_template {
        put(TEMPLATE.to_string(), GgufValue::of_text(template));
    }
    if !parts.named_templates.is_empty() {
        let names: Vec<&String> = parts.named_templates.iter().map(|(name, _)| name).collect();
        put(
            "tokenizer.chat_templates".to_string(),
            GgufValue::of_texts(&names),
        );
    }
    for (name, text) in &parts.named_templates {
        put(format!("{NAMED_TEMPLATE}{name}"), GgufValue::of_text(text));
    }
    keys
}
