//! Families with RMSNorm, rotary positions and SwiGLU: their configurations, and the parts that their layers have in common.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::gguf_values::Keys as GgufKeys;
use super::hf_keys::{Keys, Taken, Window, head_dim};
use super::hf_rules::{Accepted, Rule};
use super::refusal::unsupported;
use crate::config::{
    Activation, Architecture, Attention, Layer, Mlp, ModelConfig, Norm, NormKind, PeftNames, Rope,
    RopeScaling, Stack, TensorNames,
};
use crate::error::Result;
use crate::formats::GgufValue;

/// Names by which PEFT knows the modules of these families.
pub(super) const PEFT: PeftNames = PeftNames {
    targets: &["q_proj", "v_proj"],
    outside: "model.rotary_emb",
    inside: &["mlp.act_fn"],
};

/// Rules of the keys of a `config.json`.
pub(super) const RULES: &[Rule] = &[
    ACTIVATION,
    // Outside Qwen2 the switch also puts a bias on o_proj.
    (
        "attention_bias",
        Accepted::Flag(false, "false (biases on q, k and v: model_type qwen2)"),
    ),
];

pub(super) const ACTIVATION: Rule = ("hidden_act", Accepted::Word("silu", &["swish"]));

/// Base of the rotary frequencies of most publications.
pub(super) const ROPE_THETA: f64 = 10_000.0;

/// Facts of a family that its configurations do not state: its parts, and the values of its publication for absent keys.
pub(super) struct Published {
    pub architecture: Architecture,
    pub context: usize,
    pub head_dim: Option<usize>,
    pub norm_eps: f64,
    pub rope_theta: f64,
    /// Number of key and value heads; that of the query heads if there is none.
    pub kv_heads: Option<usize>,
    pub tied: bool,
    pub attention_bias: bool,
    pub qk_norm: bool,
    pub window: Window,
}

/// The norm of every part of a model.
pub(super) fn norm(config: &ModelConfig) -> Norm {
    Norm::new(NormKind::Rms, config.norm_eps)
}

/// Describes attention with rotary positions, without norms of queries and keys.
pub fn attention(config: &ModelConfig) -> Attention {
    Attention {
        rope: Some(Rope {
            head_dim: config.head_dim,
            base: config.rope_theta,
            scaling: config.rope_scaling,
        }),
        bias: config.attention_bias,
        ..Attention::new(
            config.num_attention_heads,
            config.num_key_value_heads,
            config.head_dim,
        )
    }
}

/// Describes the MLP.
pub(super) fn mlp(config: &ModelConfig) -> Mlp {
    Mlp {
        activation: Activation::SwiGlu,
        width: config.intermediate_size,
        bias: false,
    }
}

/// Describes a model whose layers are all equal.
pub(super) fn stack(config: &ModelConfig, layer: Layer, names: &'static TensorNames) -> Stack {
    Stack {
        tied: config.tie_word_embeddings,
        ..Stack::new(vec![layer; config.num_hidden_layers], norm(config), names)
    }
}

/// Reads the keys of a `config.json`.
pub(super) fn read_hf(
    keys: &Keys<'_>,
    model_type: &str,
    published: &Published,
    taken: &mut Taken,
) -> Result<ModelConfig> {
    let (hidden_size, heads) = (keys.need("hidden_size")?, keys.need("num_attention_heads")?);
    let context = keys.context("max_position_embeddings", published.context, taken)?;
    keys.refuse_sliding_window(&published.window, context)?;
    let (rope_theta, rope_scaling) = keys.rope(published.rope_theta, taken)?;
    Ok(ModelConfig {
        architecture: published.architecture,
        model_type: model_type.to_string(),
        vocab_size: keys.need("vocab_size")?,
        hidden_size,
        intermediate_size: keys.need("intermediate_size")?,
        num_hidden_layers: keys.need("num_hidden_layers")?,
        num_attention_heads: heads,
        num_key_value_heads: keys
            .count("num_key_value_heads")?
            .or(published.kv_heads)
            .unwrap_or(heads),
        head_dim: head_dim(
            keys.count("head_dim")?.or(published.head_dim),
            hidden_size,
            heads,
        )?,
        max_position_embeddings: context,
        norm_eps: keys.constant("rms_norm_eps", published.norm_eps, taken)?,
        rope_theta,
        rope_scaling,
        tie_word_embeddings: keys.bool("tie_word_embeddings", published.tied)?,
        attention_bias: published.attention_bias,
        qk_norm: published.qk_norm,
        initializer_range: keys.number("initializer_range")?.unwrap_or(0.02),
        ..ModelConfig::default()
    })
}

/// Writes a `config.json` with these `switches` of the family.
pub(super) fn write_hf(
    config: &ModelConfig,
    model_type: &str,
    class: &str,
    switches: &[(&str, Value)],
) -> Value {
    let mut value = json!({
        "architectures": [class], "model_type": model_type, "hidden_act": "silu",
        "vocab_size": config.vocab_size, "hidden_size": config.hidden_size, "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_hidden_layers, "num_attention_heads": config.num_attention_heads,
        "num_key_value_heads": config.num_key_value_heads, "head_dim": config.head_dim,
        "max_position_embeddings": config.max_position_embeddings, "rms_norm_eps": config.norm_eps,
        "rope_theta": config.rope_theta, "initializer_range": config.initializer_range,
        "tie_word_embeddings": config.tie_word_embeddings,
    });
    for (key, switch) in switches {
        value[key] = switch.clone();
    }
    match config.rope_scaling {
        RopeScaling::Default => {}
        scaling => value["rope_scaling"] = json!(scaling),
    }
    value
}

/// Reads the metadata of a GGUF file.
pub(super) fn read_gguf(
    keys: &GgufKeys<'_>,
    published: &Published,
    tied: bool,
) -> Result<ModelConfig> {
    let context = keys.need("context_length")?;
    if let Some(window) = keys
        .count("attention.sliding_window")?
        .filter(|n| (1..context).contains(n))
    {
        return Err(unsupported(
            &keys.full("attention.sliding_window"),
            window,
            "absent",
        ));
    }
    let hidden_size = keys.need("embedding_length")?;
    let heads = keys.need_uniform("attention.head_count")?;
    let head_dim = match keys.count("attention.key_length")? {
        Some(dim) => dim,
        None => keys.head_dim(hidden_size, heads)?,
    };
    keys.check_heads(head_dim)?;
    if let Some(other) = keys
        .count("rope.dimension_count")?
        .filter(|n| *n != head_dim)
    {
        return Err(unsupported(
            &keys.full("rope.dimension_count"),
            other,
            &head_dim.to_string(),
        ));
    }
    let rope_theta = keys.number("rope.freq_base")?.unwrap_or(10_000.0);
    Ok(ModelConfig {
        architecture: published.architecture,
        model_type: keys.family.to_string(),
        vocab_size: keys.vocab_size()?,
        hidden_size,
        intermediate_size: keys.need_uniform("feed_forward_length")?,
        num_hidden_layers: keys.need("block_count")?,
        num_attention_heads: heads,
        num_key_value_heads: keys.uniform("attention.head_count_kv")?.unwrap_or(heads),
        head_dim,
        max_position_embeddings: context,
        norm_eps: keys
            .number("attention.layer_norm_rms_epsilon")?
            .ok_or_else(|| keys.absent("attention.layer_norm_rms_epsilon"))?,
        rope_theta,
        rope_scaling: keys.rope_scaling(head_dim, rope_theta)?,
        tie_word_embeddings: tied,
        attention_bias: published.attention_bias,
        qk_norm: published.qk_norm,
        initializer_range: 0.02,
        ..ModelConfig::default()
    })
}

/// The keys below the architecture that these families have, in the order of a file.
pub(super) fn gguf_keys(config: &ModelConfig) -> Vec<(&'static str, GgufValue)> {
    let count = GgufValue::of_count;
    let mut keys = vec![(
        "attention.layer_norm_rms_epsilon",
        GgufValue::of_f32(config.norm_eps as f32),
    )];
    if config.head_dim * config.num_attention_heads != config.hidden_size {
        keys.extend([
            ("attention.key_length", count(config.head_dim)),
            ("attention.value_length", count(config.head_dim)),
        ]);
    }
    keys.extend([
        ("rope.dimension_count", count(config.head_dim)),
        (
            "rope.freq_base",
            GgufValue::of_f32(config.rope_theta as f32),
        ),
    ]);
    if let RopeScaling::Linear { factor } = config.rope_scaling {
        keys.extend([
            ("rope.scaling.type", GgufValue::of_text("linear")),
            ("rope.scaling.factor", GgufValue::of_f32(factor as f32)),
        ]);
    }
    keys
}

/// The full name of a tensor of a folder; `None` for the frequencies that some exporters write.
pub(super) fn full_name(name: &str) -> Option<Cow<'_, str>> {
    (!name.ends_with("rotary_emb.inv_freq")).then_some(Cow::Borrowed(name))
}
