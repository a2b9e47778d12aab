//! Qwen3.5: gated delta rules (arXiv:2412.06464) in most blocks, and attention with a gate for each head in the others. Weights of norms are stored
//! as their difference from 1, except for that of the delta rules.

use serde_json::{Value, json};

use super::family::{Described, Effect, Family, Unsaid};
use super::gemma;
use super::gguf_values::Keys as GgufKeys;
use super::hf_keys::{Keys, Taken, wrong};
use super::hf_rope::PublishedRope;
use super::hf_rules::{Accepted, Rule};
use super::llama::{self, LLAMA};
use super::refusal::unsupported;
use super::rotary::{self, Published};
use super::rotary_gguf;
use crate::config::{
    Architecture, Attention, DeltaNet, Layer, ModelConfig, QkNorm, Slot, Stack, TensorNames,
};
use crate::error::Result;
use crate::formats::GgufValue;
use crate::state::{Reordering, Tiles};

const WORD: &str = "qwen3_5_text";

/// Word of GGUF.
const GGUF_WORD: &str = "qwen35";

/// ε of the length of queries and keys in a delta rule; llama.cpp takes that of the norms.
const LENGTH_EPS: f64 = 1e-6;

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
    titles: &["Qwen3.5"],
    model_types: &[WORD],
    gguf: &[GGUF_WORD],
    names: &NAMES,
    last_norm: gemma::norm,
    stack,
    hf_reads: &["layer_types"],
    hf_rules: |_| RULES,
    read_hf,
    write_hf,
    read_gguf,
    gguf_word,
    gguf_parts: &[(Slot::MlpNorm, "post_attention_norm")],
    gguf_whole: &[
        ("ssm_a", "linear_attn.A_log"),
        ("ssm_dt.bias", "linear_attn.dt_bias"),
    ],
    gguf_keys,
    gguf_effects: &[
        (TAPS, Effect::Read),
        (KEY_DIM, Effect::Read),
        (KEY_HEADS, Effect::Read),
        (VALUE_HEADS, Effect::Read),
        (VALUES, Effect::Read),
        (EVERY, Effect::Read),
        // A text has three times the same position.
        ("rope.dimension_sections", Effect::Nothing),
    ],
    order,
    ..LLAMA
};

/// The distance of the blocks with attention, in a `config.json` and in GGUF.
const EVERY: &str = "full_attention_interval";

/// Keys of GGUF.
const TAPS: &str = "ssm.conv_kernel";
const KEY_DIM: &str = "ssm.state_size";
const KEY_HEADS: &str = "ssm.group_count";
const VALUE_HEADS: &str = "ssm.time_step_rank";
const VALUES: &str = "ssm.inner_size";

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
        return match keys.count(EVERY)?.unwrap_or(INTERVAL) {
            0 => Err(unsupported(EVERY, 0, "1 or more")),
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

/// Numbers of the pairs of rotated dimensions that have each of the three positions, which are the same in a text.
fn sections(config: &ModelConfig) -> [usize; 3] {
    let pairs = rotary::rope(config).rotated / 2;
    let first = pairs.div_ceil(3);
    let second = (pairs - first).div_ceil(2);
    [first, second, pairs - first - second]
}

/// The rotary positions.
fn rope_parameters(config: &ModelConfig) -> Value {
    json!({
        "rope_type": "default",
        "rope_theta": config.rope_theta,
        "partial_rotary_factor": config.partial_rotary_factor.unwrap_or(1.0),
        "mrope_section": sections(config),
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
    // mlx-lm reads this key alone.
    if let Some(interval) = interval(config) {
        own.push((EVERY, json!(interval)));
    }
    let delta = config.linear_attention.unwrap_or(PUBLISHED_DELTA);
    own.extend(delta_keys(&delta).map(|(key, value)| (key, json!(value))));
    own.push(("rope_parameters", rope_parameters(config)));
    rotary::write_hf(config, WORD, "Qwen3_5ForCausalLM", &own)
}

/// The distance of the blocks with attention, if it is the same everywhere.
fn interval(config: &ModelConfig) -> Option<usize> {
    let layers = config.num_hidden_layers;
    let others = |interval| rotary::others(&rotary::every(interval, layers), layers);
    (1..=layers + 1).find(|interval| others(*interval) == config.linear_layers)
}

fn gguf_word(config: &ModelConfig) -> Described {
    let expected = "full_attention in every n-th block, linear_attention in the others";
    Unsaid::unless(interval(config).is_some(), "layer_types", expected)?;
    let delta = config.linear_attention.unwrap_or(PUBLISHED_DELTA);
    let same = delta.key_dim == delta.value_dim;
    Unsaid::unless(same, "linear_value_head_dim", "that of linear_key_head_dim")?;
    let usual = (config.norm_eps / LENGTH_EPS - 1.0).abs() < 1e-6;
    Unsaid::unless(
        usual,
        "rms_norm_eps",
        "1e-6, which llama.cpp also takes for the length of keys",
    )?;
    Ok(GGUF_WORD)
}

fn gguf_keys(config: &ModelConfig) -> Vec<(&'static str, GgufValue)> {
    let mut keys = rotary_gguf::gguf_keys(config);
    let delta = config.linear_attention.unwrap_or(PUBLISHED_DELTA);
    let counts = [
        (TAPS, delta.taps),
        (KEY_DIM, delta.key_dim),
        (KEY_HEADS, delta.key_heads),
        (VALUE_HEADS, delta.value_heads),
        (VALUES, delta.widths()[1]),
        (EVERY, interval(config).unwrap_or(INTERVAL)),
    ];
    keys.extend(counts.map(|(key, count)| (key, GgufValue::of_count(count))));
    let [a, b, c] = sections(config).map(|pairs| pairs as i32);
    keys.push(("rope.dimension_sections", GgufValue::of_i32s(&[a, b, c, 0])));
    keys
}

fn read_gguf(keys: &GgufKeys<'_>, tied: bool) -> Result<ModelConfig> {
    let config = rotary_gguf::read_gguf(keys, &PUBLISHED, tied)?;
    let (value_heads, values) = (keys.need(VALUE_HEADS)?, keys.need(VALUES)?);
    if value_heads == 0 || !values.is_multiple_of(value_heads) {
        let expected = format!("a multiple of {VALUE_HEADS} {value_heads}");
        return Err(unsupported(&keys.full(VALUES), values, &expected));
    }
    let interval = match keys.count(EVERY)?.unwrap_or(INTERVAL) {
        0 => return Err(unsupported(&keys.full(EVERY), 0, "1 or more")),
        interval => interval,
    };
    let layers = config.num_hidden_layers;
    Ok(ModelConfig {
        model_type: WORD.to_owned(),
        linear_layers: rotary::others(&rotary::every(interval, layers), layers),
        linear_attention: Some(DeltaNet {
            key_heads: keys.need(KEY_HEADS)?,
            value_heads,
            key_dim: keys.need(KEY_DIM)?,
            value_dim: values / value_heads,
            taps: keys.need(TAPS)?,
        }),
        ..config
    })
}

/// The heads of values alternate between those of the key heads; weights of norms are stored with 1 added, except for those of the delta rules.
fn order(part: &str, end: &str, gguf_architecture: &str, config: &ModelConfig) -> Reordering {
    let delta = config.linear_attention.unwrap_or(PUBLISHED_DELTA);
    let heads = |first, width| Tiles {
        first,
        groups: delta.key_heads,
        heads: delta.value_heads / delta.key_heads.max(1),
        width,
    };
    let alone = heads(0, 1).heads == 1;
    let (queries_and_keys, values) = (2 * delta.widths()[0], delta.value_dim);
    match part {
        "ssm_a" => Reordering::Rates(heads(0, 1)),
        "ssm_norm" => Reordering::Same,
        "ssm_conv1d" if alone => Reordering::Squeezed,
        "ssm_conv1d" => Reordering::TiledTaps(heads(queries_and_keys, values)),
        "attn_qkv" | "attn_gate" | "ssm_alpha" | "ssm_beta" | "ssm_dt.bias" | "ssm_out"
            if alone =>
        {
            Reordering::Same
        }
        "attn_qkv" => Reordering::Tiled(heads(queries_and_keys, values)),
        "attn_gate" => Reordering::Tiled(heads(0, values)),
        "ssm_alpha" | "ssm_beta" | "ssm_dt.bias" => Reordering::Tiled(heads(0, 1)),
        "ssm_out" => Reordering::TiledColumns(heads(0, values)),
        _ => gemma::order(part, end, gguf_architecture, config),
    }
}
