//! Llama and the models with its parts: Mistral, Qwen2 and Qwen3.

use serde_json::{Value, json};

use super::family::{Described, Family, HEAD, LAST_NORM, Unsaid};
use super::gguf_values::Keys as GgufKeys;
use super::hf_keys::{Keys, Taken, Window};
use super::rotary::{self, Published};
use super::rotary_gguf;
use crate::config::{
    Architecture, Attention, Layer, ModelConfig, QkNorm, Slot, Stack, TensorNames,
};
use crate::error::Result;
use crate::state::Reordering;

/// Dimensions of a head of Qwen3 whose configuration states none (transformers).
const QWEN3_HEAD_DIM: usize = 128;

/// Sliding window of Mistral whose configuration has no key for it (transformers).
const MISTRAL_WINDOW: usize = 4096;

/// ε of a configuration that states none, in every family here (transformers).
const PUBLISHED_EPS: f64 = 1e-6;

pub(super) const LLAMA: Family = Family {
    titles: &["Llama", "Mistral", "Qwen2", "Qwen3"],
    model_types: &["llama", "mistral", "qwen2", "qwen3"],
    gguf: &["llama", "qwen2", "qwen3"],
    names: &NAMES,
    peft: &rotary::PEFT,
    tied: false,
    last_norm: rotary::norm,
    stack,
    hf_reads: &[],
    hf_rules: |model_type| {
        if model_type == "qwen2" {
            &[rotary::ACTIVATION]
        } else {
            rotary::RULES
        }
    },
    read_hf,
    write_hf,
    read_gguf,
    gguf_word,
    gguf_last_norm: LAST_NORM,
    gguf_parts: &[],
    gguf_whole: &[],
    gguf_form: |_| None,
    gguf_keys: rotary_gguf::gguf_keys,
    gguf_effects: &[],
    order,
    full_name: rotary::full_name,
};

pub(super) const NAMES: TensorNames = TensorNames {
    blocks: "model.layers.",
    parts: &[
        (Slot::Query, "self_attn.q_proj"),
        (Slot::Key, "self_attn.k_proj"),
        (Slot::Value, "self_attn.v_proj"),
        (Slot::Output, "self_attn.o_proj"),
        (Slot::QueryNorm, "self_attn.q_norm"),
        (Slot::KeyNorm, "self_attn.k_norm"),
        (Slot::Gate, "mlp.gate_proj"),
        (Slot::Up, "mlp.up_proj"),
        (Slot::Down, "mlp.down_proj"),
        (Slot::AttentionNorm, "input_layernorm"),
        (Slot::MlpNorm, "post_attention_layernorm"),
    ],
    outer: &[
        (Slot::Tokens, "model.embed_tokens.weight"),
        (Slot::LastNorm, "model.norm.weight"),
        (Slot::Head, HEAD),
    ],
};

/// Describes the layers; Qwen2 has biases on queries, keys and values, Qwen3 norms of their heads.
fn stack(config: &ModelConfig) -> Stack {
    let qk_norm = if config.qk_norm {
        QkNorm::Head
    } else {
        QkNorm::None
    };
    let attention = Attention {
        qk_norm,
        ..rotary::attention(config)
    };
    let layer = Layer::new(rotary::norm(config), attention, rotary::mlp(config));
    rotary::stack(config, layer, &NAMES)
}

/// Returns what the configurations of a model type do not state.
fn published(model_type: &str) -> Published {
    Published {
        context: match model_type {
            "mistral" => 131_072,
            "qwen2" | "qwen3" => 32_768,
            _ => 2048,
        },
        head_dim: (model_type == "qwen3").then_some(QWEN3_HEAD_DIM),
        norm_eps: PUBLISHED_EPS,
        tied: LLAMA.tied,
        attention_bias: model_type == "qwen2",
        qk_norm: model_type == "qwen3",
        window: match model_type {
            "mistral" => Window {
                absent: Some(MISTRAL_WINDOW),
                ..Window::STATED
            },
            "qwen2" | "qwen3" => Window {
                switch: Some("use_sliding_window"),
                ..Window::STATED
            },
            _ => Window::STATED,
        },
        ..Published::of(Architecture::Llama)
    }
}

fn read_hf(keys: &Keys<'_>, model_type: &str, taken: &mut Taken) -> Result<ModelConfig> {
    let published = published(model_type);
    let config = rotary::read_hf(keys, model_type, &published, taken)?;
    let window = keys.window(&published.window)?;
    if model_type == "mistral" {
        return Ok(rotary::windowed(config, window));
    }
    keys.refuse_window(window, config.max_position_embeddings)?;
    Ok(config)
}

fn write_hf(config: &ModelConfig) -> Value {
    // The family decides what Hugging Face's code builds, so it is derived from the parts that the model has.
    let (model_type, class) = match (
        config.attention_bias,
        config.qk_norm,
        config.model_type.as_str(),
    ) {
        (true, _, _) => ("qwen2", "Qwen2ForCausalLM"),
        (false, true, _) => ("qwen3", "Qwen3ForCausalLM"),
        (false, false, "mistral") => ("mistral", "MistralForCausalLM"),
        (false, false, _) => ("llama", "LlamaForCausalLM"),
    };
    let off = Value::from(false);
    let switches = match model_type {
        "llama" => vec![("attention_bias", off.clone()), ("mlp_bias", off)],
        "mistral" => vec![("sliding_window", json!(config.sliding_window))],
        "qwen3" => vec![("attention_bias", off)],
        _ => vec![("use_sliding_window", off)],
    };
    rotary::write_hf(config, model_type, class, &switches)
}

fn read_gguf(keys: &GgufKeys<'_>, tied: bool) -> Result<ModelConfig> {
    // A llama with biases is called Qwen2 by Hugging Face. A Qwen3 has norms instead: biases in addition to them are unexpected tensors.
    let attention_bias = keys.family == "qwen2"
        || keys.family == "llama" && keys.file.tensor("blk.0.attn_q.bias").is_some();
    rotary_gguf::read_gguf(
        keys,
        &Published {
            attention_bias,
            ..published(keys.family)
        },
        tied,
    )
}

fn gguf_word(config: &ModelConfig) -> Described {
    rotary_gguf::no_window(config)?;
    rotary_gguf::plain_yarn(config)?;
    match config.model_type.as_str() {
        "qwen2" if config.attention_bias && !config.qk_norm => Ok("qwen2"),
        "qwen3" if config.qk_norm && !config.attention_bias => Ok("qwen3"),
        "llama" | "mistral" if !config.qk_norm => Ok("llama"),
        _ => Err(Unsaid {
            key: "model_type",
            expected: "llama, mistral, qwen2 or qwen3, each with the parts of that model",
        }),
    }
}

/// Only GGUF's architecture `llama` has rows in pairs; Qwen's files have them as in Hugging Face.
fn order(part: &str, end: &str, gguf_architecture: &str, config: &ModelConfig) -> Reordering {
    match gguf_architecture {
        "llama" => paired_rows(part, end, gguf_architecture, config),
        _ => Reordering::Same,
    }
}

/// The rows of queries and keys are in pairs, also in layers without rotary positions.
pub(super) fn paired_rows(
    part: &str,
    _end: &str,
    _gguf_architecture: &str,
    config: &ModelConfig,
) -> Reordering {
    match part {
        "attn_q" => Reordering::PairedRows(config.num_attention_heads),
        "attn_k" => Reordering::PairedRows(config.num_key_value_heads),
        _ => Reordering::Same,
    }
}
