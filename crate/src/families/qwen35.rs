//! Qwen3.5: gated delta rules (arXiv:2412.06464) in most blocks, and attention with a gate for each head in the others. Weights of norms are stored
//! as their difference from 1, except for that of the delta rules.

use serde_json::{Value, json};

use super::family::{Family, Unsaid};
use super::gemma;
use super::hf_keys::{Keys, Taken, wrong};
use super::hf_rope::PublishedRope;
use super::hf_rules::{Accepted, Rule};
use super::llama::{self, LLAMA};
use super::refusal::unsupported;
use super::rotary::{self, Published};
use crate::config::{
    Architecture, Attention, DeltaNet, Layer, ModelConfig, QkNorm, Slot, Stack, TensorNames,
};
use crate::error::Result;

const WORD: &str = "qwen3_5_text";

/// Words of `layer_types`.
const DELTA: &str = "linear_attention";
const FULL: &str = "full_attention";

/// Distance of the blocks with attention, where neither key states it.
const INTERVAL: usize = 4;

/// Facts that configurations do not state (transformers, `configuration_qwen3_5.py`).
const PUBLISHED: Published = Published {
    context: 32_768,
    head_dim: Some(256),
    norm_eps: 1e-6,
    rope: PublishedRope {
        words: &["default"],
        partial: Some(0.25),
        ..PublishedRope::USUAL
    },
    kv_heads: Some(4),
    qk_norm: true,
    ..Published::of(Architecture::Qwen35)
};

/// The delta rule of a configuration that states nothing of it.
const PUBLISHED_DELTA: DeltaNet = DeltaNet {
    key_heads: 16,
    value_heads: 32,
    key_dim: 128,
    value_dim: 128,
    taps: 4,
};

pub(super) const QWEN35: Family = Family {
    model_types: &[WORD],
    gguf: &[],
    names: &NAMES,
    last_norm: gemma::norm,
    stack,
    hf_reads: &["layer_types"],
    hf_rules: |_| RULES,
    read_hf,
    write_hf,
    gguf_word: |_| {
        let expected = "attention in every layer: delta rules are not yet written to GGUF";
        Unsaid::unless(false, "layer_types", expected).map(|()| WORD)
    },
    ..LLAMA
};

/// Rules of the keys of a `config.json`.
const RULES: &[Rule] = &[
    rotary::ACTIVATION,
    ("attention_bias", Accepted::Flag(false, "false")),
    ("attn_output_gate", Accepted::Flag(true, "true")),
];

const NAMES: TensorNames = TensorNames {
    parts: &[
        (Slot::DeltaDecays, "linear_attn"),
        (Slot::DeltaTaps, "linear_attn.conv1d"),
        (Slot::DeltaDecay, "linear_attn.in_proj_a"),
        (Slot::DeltaWeight, "linear_attn.in_proj_b"),
        (Slot::DeltaInput, "linear_attn.in_proj_qkv"),
        (Slot::DeltaGate, "linear_attn.in_proj_z"),
        (Slot::DeltaNorm, "linear_attn.norm"),
        (Slot::DeltaOutput, "linear_attn.out_proj"),
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
    ..llama::NAMES
};

fn stack(config: &ModelConfig) -> Stack {
    let attention = Attention {
        qk_norm: QkNorm::Head,
        gate: true,
        ..rotary::attention(config)
    };
    let layer = Layer::new(gemma::norm(config), attention, rotary::mlp(config));
    rotary::stack(config, layer, &NAMES)
}

/// The blocks with a delta rule.
fn linear_layers(keys: &Keys<'_>, layers: usize) -> Result<Vec<usize>> {
    const TYPES: &str = "layer_types";
    let Some(list) = keys.get(TYPES) else {
        const KEY: &str = "full_attention_interval";
        return match keys.count(KEY)?.unwrap_or(INTERVAL) {
            0 => Err(unsupported(KEY, 0, "1 or more")),
            interval => Ok(rotary::others(&rotary::every(interval, layers), layers)),
        };
    };
    let expected = || format!("a list of {layers} words, {DELTA} or {FULL}");
    let words = list.as_array().filter(|words| words.len() == layers);
    let words = words.ok_or_else(|| wrong(TYPES, &expected(), list))?;
    let mut found = Vec::new();
    for (index, word) in words.iter().enumerate() {
        match word.as_str() {
            Some(DELTA) => found.push(index),
            Some(FULL) => {}
            _ => return Err(unsupported(TYPES, word, &format!("{DELTA}, {FULL}"))),
        }
    }
    Ok(found)
}

/// The keys of a delta rule, with their values.
fn delta_keys(delta: &DeltaNet) -> [(&'static str, usize); 5] {
    [
        ("linear_num_key_heads", delta.key_heads),
        ("linear_num_value_heads", delta.value_heads),
        ("linear_key_head_dim", delta.key_dim),
        ("linear_value_head_dim", delta.value_dim),
        ("linear_conv_kernel_dim", delta.taps),
    ]
}

fn read_hf(keys: &Keys<'_>, model_type: &str, taken: &mut Taken) -> Result<ModelConfig> {
    let config = rotary::read_hf(keys, model_type, &PUBLISHED, taken)?;
    let mut stated = [0; 5];
    for (value, (key, published)) in stated.iter_mut().zip(delta_keys(&PUBLISHED_DELTA)) {
        *value = keys.count(key)?.unwrap_or(published);
    }
    let [key_heads, value_heads, key_dim, value_dim, taps] = stated;
    Ok(ModelConfig {
        linear_layers: linear_layers(keys, config.num_hidden_layers)?,
        linear_attention: Some(DeltaNet {
            key_heads,
            value_heads,
            key_dim,
            value_dim,
            taps,
        }),
        ..config
    })
}

/// The rotary positions, in whose dimensions a text has three times the same position.
fn rope_parameters(config: &ModelConfig) -> Value {
    let pairs = rotary::rope(config).rotated / 2;
    let first = pairs.div_ceil(3);
    let second = (pairs - first).div_ceil(2);
    json!({
        "rope_type": "default",
        "rope_theta": config.rope_theta,
        "partial_rotary_factor": config.partial_rotary_factor.unwrap_or(1.0),
        "mrope_section": [first, second, pairs - first - second],
        "mrope_interleaved": true,
    })
}

fn write_hf(config: &ModelConfig) -> Value {
    let kind = |index| match config.linear_layers.contains(&index) {
        true => DELTA,
        false => FULL,
    };
    let kinds: Value = (0..config.num_hidden_layers).map(kind).collect();
    let mut own = vec![
        ("attention_bias", json!(false)),
        ("attn_output_gate", json!(true)),
        ("layer_types", kinds),
    ];
    let delta = config.linear_attention.unwrap_or(PUBLISHED_DELTA);
    own.extend(delta_keys(&delta).map(|(key, value)| (key, json!(value))));
    own.push(("rope_parameters", rope_parameters(config)));
    rotary::write_hf(config, WORD, "Qwen3_5ForCausalLM", &own)
}
