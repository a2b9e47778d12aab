//! GPT-2.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::family::{Effect, Family, HEAD, LAST_NORM};
use super::gguf_values::Keys as GgufKeys;
use super::hf_keys::{Keys, Taken, head_dim};
use super::hf_rules::{Accepted, Rule};
use super::refusal::unsupported;
use crate::config::{
    Activation, Architecture, Attention, Layer, Mlp, ModelConfig, Norm, NormKind, PeftNames, Slot,
    Stack, TensorNames,
};
use crate::error::Result;
use crate::formats::GgufValue;
use crate::state::Reordering;

/// Context of a configuration that states none (transformers).
const PUBLISHED_CONTEXT: usize = 1024;

/// ε of a configuration that states none (transformers).
const PUBLISHED_EPS: f64 = 1e-5;

pub(super) const GPT2: Family = Family {
    titles: &["GPT-2"],
    model_types: &["gpt2"],
    gguf: &["gpt2"],
    names: &NAMES,
    peft: &PeftNames {
        targets: &["c_attn"],
        outside: "transformer.drop",
        inside: &[
            "attn.attn_dropout",
            "attn.resid_dropout",
            "mlp.act",
            "mlp.dropout",
        ],
    },
    tied: true,
    last_norm: norm,
    stack,
    hf_reads: &[],
    hf_rules: |_| RULES,
    read_hf,
    write_hf,
    read_gguf,
    gguf_word: |_| Ok("gpt2"),
    gguf_last_norm: LAST_NORM,
    gguf_parts: &[],
    gguf_whole: &[],
    gguf_form: |_| None,
    gguf_keys: |config| {
        vec![(
            "attention.layer_norm_epsilon",
            GgufValue::of_f32(config.norm_eps as f32),
        )]
    },
    // Another norm, and no rotary positions.
    gguf_effects: &[
        ("attention.layer_norm_epsilon", Effect::Read),
        ("attention.layer_norm_rms_epsilon", Effect::Nothing),
        ("attention.sliding_window", Effect::UnlessZero),
        ("rope.dimension_count", Effect::Nothing),
        ("rope.dimension_sections", Effect::Nothing),
        ("rope.freq_base", Effect::Nothing),
        ("rope.scale_linear", Effect::Nothing),
        ("rope.scaling.type", Effect::Nothing),
        ("rope.scaling.factor", Effect::Nothing),
        ("rope.scaling.alpha", Effect::Nothing),
        ("rope.scaling.attn_factor", Effect::Nothing),
        ("rope.scaling.original_context_length", Effect::Nothing),
        ("rope.scaling.yarn_beta_fast", Effect::Nothing),
        ("rope.scaling.yarn_beta_slow", Effect::Nothing),
        ("rope.scaling.yarn_ext_factor", Effect::Nothing),
        ("rope.scaling.yarn_attn_factor", Effect::Nothing),
        ("rope.scaling.yarn_log_multiplier", Effect::Nothing),
    ],
    order,
    full_name,
};

/// Rules of the keys of a `config.json`.
const RULES: &[Rule] = &[
    (
        "activation_function",
        Accepted::Word("gelu_new", &["gelu_pytorch_tanh", "gelu_fast"]),
    ),
    ("scale_attn_weights", Accepted::Flag(true, "true")),
    (
        "scale_attn_by_inverse_layer_idx",
        Accepted::Flag(false, "false"),
    ),
];

const NAMES: TensorNames = TensorNames {
    blocks: "transformer.h.",
    parts: &[
        (Slot::AttentionNorm, "ln_1"),
        (Slot::QueryKeyValue, "attn.c_attn"),
        (Slot::Output, "attn.c_proj"),
        (Slot::MlpNorm, "ln_2"),
        (Slot::Up, "mlp.c_fc"),
        (Slot::Down, "mlp.c_proj"),
    ],
    outer: &[
        (Slot::Tokens, "transformer.wte.weight"),
        (Slot::Positions, "transformer.wpe.weight"),
        (Slot::LastNorm, "transformer.ln_f.weight"),
        (Slot::Head, HEAD),
    ],
};

fn norm(config: &ModelConfig) -> Norm {
    Norm::new(NormKind::Layer, config.norm_eps)
}

/// Describes layers of LayerNorm and GELU with biases everywhere; positions are learned.
fn stack(config: &ModelConfig) -> Stack {
    let heads = Attention::new(
        config.num_attention_heads,
        config.num_key_value_heads,
        config.head_dim,
    );
    let attention = Attention {
        bias: true,
        output_bias: true,
        fused: true,
        ..heads
    };
    let mlp = Mlp {
        activation: Activation::Gelu,
        width: config.intermediate_size,
        bias: true,
        fused: false,
    };
    Stack {
        positions: Some(config.max_position_embeddings),
        tied: config.tie_word_embeddings,
        conv1d: true,
        ..Stack::new(
            vec![Layer::new(norm(config), attention, mlp); config.num_hidden_layers],
            norm(config),
            &NAMES,
        )
    }
}

fn read_hf(keys: &Keys<'_>, _model_type: &str, taken: &mut Taken) -> Result<ModelConfig> {
    let (hidden_size, heads) = (keys.need("n_embd")?, keys.need("n_head")?);
    Ok(ModelConfig {
        architecture: Architecture::Gpt2,
        model_type: "gpt2".into(),
        vocab_size: keys.need("vocab_size")?,
        hidden_size,
        intermediate_size: keys
            .count("n_inner")?
            .unwrap_or(hidden_size.saturating_mul(4)),
        num_hidden_layers: keys.need("n_layer")?,
        num_attention_heads: heads,
        num_key_value_heads: heads,
        head_dim: head_dim(None, hidden_size, heads)?,
        max_position_embeddings: keys.context("n_positions", PUBLISHED_CONTEXT, taken)?,
        norm_eps: keys.constant("layer_norm_epsilon", PUBLISHED_EPS, taken)?,
        rope_theta: 10_000.0,
        tie_word_embeddings: keys.bool("tie_word_embeddings", GPT2.tied)?,
        attention_bias: true,
        initializer_range: keys.number("initializer_range")?.unwrap_or(0.02),
        ..ModelConfig::default()
    })
}

fn write_hf(config: &ModelConfig) -> Value {
    json!({
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "activation_function": "gelu_new",
        "vocab_size": config.vocab_size, "n_embd": config.hidden_size, "n_inner": config.intermediate_size,
        "n_layer": config.num_hidden_layers, "n_head": config.num_attention_heads, "n_positions": config.max_position_embeddings,
        "n_ctx": config.max_position_embeddings, "layer_norm_epsilon": config.norm_eps,
        "initializer_range": config.initializer_range, "tie_word_embeddings": config.tie_word_embeddings,
    })
}

fn read_gguf(keys: &GgufKeys<'_>, tied: bool) -> Result<ModelConfig> {
    let hidden_size = keys.need("embedding_length")?;
    let heads = keys.need_uniform("attention.head_count")?;
    let head_dim = keys.head_dim(hidden_size, heads)?;
    keys.check_heads(head_dim, false)?;
    if let Some(other) = keys
        .uniform("attention.head_count_kv")?
        .filter(|n| *n != heads)
    {
        return Err(unsupported(
            &keys.full("attention.head_count_kv"),
            other,
            &heads.to_string(),
        ));
    }
    Ok(ModelConfig {
        architecture: Architecture::Gpt2,
        model_type: "gpt2".into(),
        vocab_size: keys.vocab_size()?,
        hidden_size,
        intermediate_size: keys.need_uniform("feed_forward_length")?,
        num_hidden_layers: keys.need("block_count")?,
        num_attention_heads: heads,
        num_key_value_heads: heads,
        head_dim,
        max_position_embeddings: keys.need("context_length")?,
        norm_eps: keys.number("attention.layer_norm_epsilon")?.unwrap_or(1e-5),
        rope_theta: 10_000.0,
        tie_word_embeddings: tied,
        attention_bias: true,
        initializer_range: 0.02,
        ..ModelConfig::default()
    })
}

fn order(part: &str, end: &str, _gguf_architecture: &str, _config: &ModelConfig) -> Reordering {
    match part {
        "attn_qkv" | "attn_output" | "ffn_up" | "ffn_down" if end == "weight" => {
            Reordering::Transposed
        }
        _ => Reordering::Same,
    }
}

/// Files of the inner model have names without its own.
fn full_name(name: &str) -> Option<Cow<'_, str>> {
    if [".attn.bias", ".attn.masked_bias", "rotary_emb.inv_freq"]
        .iter()
        .any(|end| name.ends_with(end))
    {
        return None;
    }
    let bare = ["wte.", "wpe.", "h.", "ln_f."]
        .iter()
        .any(|start| name.starts_with(start));
    Some(if bare {
        Cow::Owned(format!("transformer.{name}"))
    } else {
        Cow::Borrowed(name)
    })
}
