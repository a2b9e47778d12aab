//! Llama and the models with its parts: Mistral, Qwen2 and Qwen3.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::config_check::unsupported;
use super::family::{Family, HEAD, Names};
use super::gguf_values::{Keys as GgufKeys, missing};
use super::hf_keys::{Keys, Taken, head_dim};
use super::layout::Layout;
use crate::config::{Architecture, ModelConfig, RopeScaling};
use crate::error::{Refusal, Result, word};
use crate::formats::GgufValue;

/// Dimensions of a head of Qwen3 whose configuration states none (transformers).
const QWEN3_HEAD_DIM: usize = 128;

/// ε of a configuration that states none, in every family here (transformers).
const PUBLISHED_EPS: f64 = 1e-6;

pub(super) const LLAMA: Family = Family {
    model_types: &["llama", "mistral", "qwen2", "qwen3"],
    gguf: &["llama", "qwen2", "qwen3"],
    names: Names {
        outer: &[("token_embd.weight", "model.embed_tokens.weight"), ("output_norm.weight", "model.norm.weight"), ("output.weight", HEAD)],
        blocks: "model.layers.",
        parts: &[
            ("attn_norm", "input_layernorm"),
            ("ffn_norm", "post_attention_layernorm"),
            ("attn_q", "self_attn.q_proj"),
            ("attn_k", "self_attn.k_proj"),
            ("attn_v", "self_attn.v_proj"),
            ("attn_output", "self_attn.o_proj"),
            ("attn_q_norm", "self_attn.q_norm"),
            ("attn_k_norm", "self_attn.k_norm"),
            ("ffn_gate", "mlp.gate_proj"),
            ("ffn_up", "mlp.up_proj"),
            ("ffn_down", "mlp.down_proj"),
        ],
    },
    embedding: "model.embed_tokens.weight",
    read_hf,
    write_hf,
    read_gguf,
    gguf_word,
    gguf_keys,
    layout,
    full_name,
};

/// Returns the context of a configuration that states none.
fn published_context(model_type: &str) -> usize {
    match model_type {
        "mistral" => 131_072,
        "qwen2" | "qwen3" => 32_768,
        _ => 2048,
    }
}

/// Reads the keys of Llama, Mistral, Qwen2 and Qwen3.
fn read_hf(keys: &Keys<'_>, model_type: &str, taken: &mut Taken) -> Result<ModelConfig> {
    let activation = keys.text("hidden_act")?.unwrap_or("silu");
    if !matches!(activation, "silu" | "swish") {
        return Err(unsupported("hidden_act", activation, "silu"));
    }
    // Outside Qwen2 the switch also puts a bias on o_proj.
    if model_type != "qwen2" && keys.bool("attention_bias", false)? {
        return Err(unsupported("attention_bias", true, "false (biases on q, k and v: model_type qwen2)"));
    }
    let (hidden_size, heads) = (keys.need("hidden_size")?, keys.need("num_attention_heads")?);
    let context = keys.context("max_position_embeddings", published_context(model_type), taken)?;
    keys.refuse_sliding_window(model_type, context)?;
    let (rope_theta, rope_scaling) = keys.rope(taken)?;
    Ok(ModelConfig {
        architecture: Architecture::Llama,
        model_type: model_type.to_string(),
        vocab_size: keys.need("vocab_size")?,
        hidden_size,
        intermediate_size: keys.need("intermediate_size")?,
        num_hidden_layers: keys.need("num_hidden_layers")?,
        num_attention_heads: heads,
        num_key_value_heads: keys.count("num_key_value_heads")?.unwrap_or(heads),
        head_dim: head_dim(keys.count("head_dim")?.or((model_type == "qwen3").then_some(QWEN3_HEAD_DIM)), hidden_size, heads)?,
        max_position_embeddings: context,
        norm_eps: keys.constant("rms_norm_eps", PUBLISHED_EPS, taken)?,
        rope_theta,
        rope_scaling,
        tie_word_embeddings: keys.bool("tie_word_embeddings", false)?,
        attention_bias: model_type == "qwen2",
        qk_norm: model_type == "qwen3",
        initializer_range: keys.number("initializer_range")?.unwrap_or(0.02),
    })
}

fn write_hf(config: &ModelConfig) -> Value {
    // The family decides what Hugging Face's code builds, so it is derived from the parts that the model has.
    let (model_type, class) = match (config.attention_bias, config.qk_norm, config.model_type.as_str()) {
        (true, _, _) => ("qwen2", "Qwen2ForCausalLM"),
        (false, true, _) => ("qwen3", "Qwen3ForCausalLM"),
        (false, false, "mistral") => ("mistral", "MistralForCausalLM"),
        (false, false, _) => ("llama", "LlamaForCausalLM"),
    };
    let mut value = json!({
        "architectures": [class], "model_type": model_type, "hidden_act": "silu",
        "vocab_size": config.vocab_size, "hidden_size": config.hidden_size, "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_hidden_layers, "num_attention_heads": config.num_attention_heads,
        "num_key_value_heads": config.num_key_value_heads, "head_dim": config.head_dim,
        "max_position_embeddings": config.max_position_embeddings, "rms_norm_eps": config.norm_eps,
        "rope_theta": config.rope_theta, "initializer_range": config.initializer_range,
        "tie_word_embeddings": config.tie_word_embeddings,
    });
    match model_type {
        "llama" => {
            value["attention_bias"] = false.into();
            value["mlp_bias"] = false.into();
        }
        "mistral" => value["sliding_window"] = Value::Null,
        "qwen3" => value["attention_bias"] = false.into(),
        _ => value["use_sliding_window"] = false.into(),
    }
    match config.rope_scaling {
        RopeScaling::Default => {}
        scaling => value["rope_scaling"] = json!(scaling),
    }
    value
}

fn read_gguf(keys: &GgufKeys<'_>, tied: bool) -> Result<ModelConfig> {
    let context = keys.need("context_length")?;
    if let Some(window) = keys.count("attention.sliding_window")?.filter(|n| (1..context).contains(n)) {
        return Err(unsupported(&keys.full("attention.sliding_window"), window, "absent"));
    }
    let hidden_size = keys.need("embedding_length")?;
    let heads = keys.heads("attention.head_count")?.ok_or_else(|| missing(keys.name, &keys.full("attention.head_count")))?;
    let head_dim = match keys.count("attention.key_length")? {
        Some(dim) => dim,
        None if heads > 0 && hidden_size.is_multiple_of(heads) => hidden_size / heads,
        None => {
            let refusal = Refusal::new(word!("model.config.heads")).of(keys.name).subject(&keys.full("attention.head_count"));
            return Err(refusal.expected(format!("a divisor of {hidden_size}")).found(heads).into());
        }
    };
    keys.check_heads(head_dim)?;
    if let Some(other) = keys.count("rope.dimension_count")?.filter(|n| *n != head_dim) {
        return Err(unsupported(&keys.full("rope.dimension_count"), other, &head_dim.to_string()));
    }
    let rope_theta = keys.number("rope.freq_base")?.unwrap_or(10_000.0);
    // A llama with biases is called Qwen2 by Hugging Face. A Qwen3 has norms instead: biases in addition to them are unexpected tensors.
    let bias = keys.family == "qwen2" || keys.family == "llama" && keys.file.tensor("blk.0.attn_q.bias").is_some();
    Ok(ModelConfig {
        architecture: Architecture::Llama,
        model_type: keys.family.to_string(),
        vocab_size: keys.vocab_size()?,
        hidden_size,
        intermediate_size: keys.need("feed_forward_length")?,
        num_hidden_layers: keys.need("block_count")?,
        num_attention_heads: heads,
        num_key_value_heads: keys.heads("attention.head_count_kv")?.unwrap_or(heads),
        head_dim,
        max_position_embeddings: context,
        norm_eps: keys
            .number("attention.layer_norm_rms_epsilon")?
            .ok_or_else(|| missing(keys.name, &keys.full("attention.layer_norm_rms_epsilon")))?,
        rope_theta,
        rope_scaling: keys.rope_scaling(head_dim, rope_theta)?,
        tie_word_embeddings: tied,
        attention_bias: bias,
        qk_norm: keys.family == "qwen3",
        initializer_range: 0.02,
    })
}

fn gguf_word(config: &ModelConfig) -> Option<&'static str> {
    match config.model_type.as_str() {
        "qwen2" if config.attention_bias && !config.qk_norm => Some("qwen2"),
        "qwen3" if config.qk_norm && !config.attention_bias => Some("qwen3"),
        "llama" | "mistral" if !config.qk_norm => Some("llama"),
        _ => None,
    }
}

fn gguf_keys(config: &ModelConfig) -> Vec<(&'static str, GgufValue)> {
    let count = GgufValue::of_count;
    let mut keys = vec![("attention.layer_norm_rms_epsilon", GgufValue::of_f32(config.norm_eps as f32))];
    if config.head_dim * config.num_attention_heads != config.hidden_size {
        keys.extend([("attention.key_length", count(config.head_dim)), ("attention.value_length", count(config.head_dim))]);
    }
    keys.extend([("rope.dimension_count", count(config.head_dim)), ("rope.freq_base", GgufValue::of_f32(config.rope_theta as f32))]);
    if let RopeScaling::Linear { factor } = config.rope_scaling {
        keys.extend([("rope.scaling.type", GgufValue::of_text("linear")), ("rope.scaling.factor", GgufValue::of_f32(factor as f32))]);
    }
    keys
}

/// Only GGUF's architecture `llama` has rows in pairs; Qwen's files have them as in Hugging Face.
fn layout(part: &str, _end: &str, gguf_architecture: &str, config: &ModelConfig) -> Layout {
    match part {
        "attn_q" if gguf_architecture == "llama" => Layout::PairedRows(config.num_attention_heads),
        "attn_k" if gguf_architecture == "llama" => Layout::PairedRows(config.num_key_value_heads),
        _ => Layout::Same,
    }
}

fn full_name(name: &str) -> Option<Cow<'_, str>> {
    (!name.ends_with("rotary_emb.inv_freq")).then_some(Cow::Borrowed(name))
}
