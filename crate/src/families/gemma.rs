//! Gemma 2 (arXiv:2408.00118) and Gemma 3 (arXiv:2503.19786): norms with 1 + w before and after attention and MLP, GeGLU, and layers with a window.
//! Gemma 2 caps scores and logits; Gemma 3 has norms of heads, and rotary positions of its own in layers with a window.

use serde_json::{Value, json};

use super::family::{Effect, Family, HEAD, LAST_NORM, Unsaid};
use super::gguf_values::Keys as GgufKeys;
use super::hf_keys::{Keys, Taken, Window};
use super::hf_rope::PublishedRope;
use super::hf_rules::{Accepted, Rule};
use super::refusal::unsupported;
use super::rotary::{self, Published};
use super::rotary_gguf;
use crate::config::{
    Activation, Architecture, Attention, Layer, Mlp, ModelConfig, Norm, NormPlaces, QkNorm, Slot,
    Stack, TensorNames,
};
use crate::error::Result;
use crate::formats::GgufValue;
use crate::state::Reordering;

/// Length of the window of a configuration that states none (transformers).
const WINDOW: usize = 4096;

/// Distance of Gemma 3's layers without a window, where no key states it. GGUF files without a pattern mean it, too.
const INTERVAL: usize = 6;

/// Base of the rotary frequencies in Gemma 3's layers with a window, where none is stated.
const LOCAL_THETA: f64 = 10_000.0;

/// Numbers of a configuration that states few (transformers, `configuration_gemma3.py`); those of Gemma 2 are the same but for the vocabulary.
const SHAPE: [(&str, usize); 5] = [
    ("num_attention_heads", 8),
    ("num_key_value_heads", 4),
    ("head_dim", 256),
    ("vocab_size", 262_208),
    ("query_pre_attn_scalar", 256),
];

/// Vocabulary of Gemma 2 (transformers, `configuration_gemma2.py`).
const GEMMA2_VOCABULARY: usize = 256_000;

const PUBLISHED2: Published = Published {
    context: 8192,
    norm_eps: 1e-6,
    tied: true,
    window: Window {
        absent: Some(WINDOW),
        ..Window::STATED
    },
    gguf_window: true,
    ..Published::of(Architecture::Gemma2)
};

const PUBLISHED3: Published = Published {
    context: 131_072,
    rope: PublishedRope {
        theta: 1e6,
        by_kind: true,
        ..PublishedRope::USUAL
    },
    qk_norm: true,
    architecture: Architecture::Gemma3,
    ..PUBLISHED2
};

pub(super) const GEMMA2: Family = Family {
    titles: &["Gemma 2"],
    model_types: &["gemma2"],
    gguf: &["gemma2"],
    names: &NAMES,
    peft: &rotary::PEFT,
    tied: true,
    last_norm: norm,
    stack,
    hf_reads: &[
        "query_pre_attn_scalar",
        "attn_logit_softcapping",
        "final_logit_softcapping",
        "layer_types",
    ],
    hf_rules: |_| RULES,
    read_hf: read_hf2,
    write_hf: |config| write_hf(config, "gemma2", "Gemma2ForCausalLM"),
    read_gguf: read_gguf2,
    gguf_word: |config| {
        plain_scores(config)?;
        let published = config.window_layers == even(config.num_hidden_layers);
        let expected = "a window in every other layer, the first one among them";
        Unsaid::unless(published, "layer_types", expected)?;
        Ok("gemma2")
    },
    gguf_last_norm: LAST_NORM,
    gguf_parts: &[],
    gguf_whole: &[],
    gguf_form: |_| None,
    gguf_keys,
    gguf_effects: &[
        ("attn_logit_softcapping", Effect::Read),
        ("final_logit_softcapping", Effect::Read),
    ],
    order,
    full_name: rotary::full_name,
};

pub(super) const GEMMA3: Family = Family {
    titles: &["Gemma 3"],
    model_types: &["gemma3_text"],
    gguf: &["gemma3"],
    read_hf: read_hf3,
    write_hf: |config| write_hf(config, "gemma3_text", "Gemma3ForCausalLM"),
    read_gguf: read_gguf3,
    gguf_word: |config| {
        plain_scores(config)?;
        let layers = config.num_hidden_layers;
        let published = rotary::others(&rotary::every(INTERVAL, layers), layers);
        let expected = "a window in all layers but every sixth";
        Unsaid::unless(config.window_layers == published, "layer_types", expected)?;
        let local = config.rope_local_base_freq == Some(LOCAL_THETA);
        Unsaid::unless(local, "rope_local_base_freq", "10000")?;
        let uncapped = config.attn_logit_softcapping.is_none();
        Unsaid::unless(uncapped, "attn_logit_softcapping", "null")?;
        Ok("gemma3")
    },
    gguf_effects: &[
        ("attn_logit_softcapping", Effect::Read),
        ("final_logit_softcapping", Effect::Read),
        ("attention.sliding_window_pattern", Effect::Read),
        ("rope.freq_base_swa", Effect::Read),
    ],
    ..GEMMA2
};

const NAMES: TensorNames = TensorNames {
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
        (Slot::AttentionPostNorm, "post_attention_layernorm"),
        (Slot::MlpNorm, "pre_feedforward_layernorm"),
        (Slot::MlpPostNorm, "post_feedforward_layernorm"),
    ],
    outer: &[
        (Slot::Tokens, "model.embed_tokens.weight"),
        (Slot::LastNorm, "model.norm.weight"),
        (Slot::Head, HEAD),
    ],
};

/// Rules of the keys of a `config.json`: GELU's tanh form by any of its words, under either key.
const RULES: &[Rule] = &[
    ("hidden_activation", GELU),
    ("hidden_act", GELU),
    ("attention_bias", Accepted::Flag(false, "false")),
];

const GELU: Accepted = Accepted::Word("gelu_pytorch_tanh", &["gelu_new", "gelu_fast"]);

pub(super) fn norm(config: &ModelConfig) -> Norm {
    Norm {
        offset: 1.0,
        ..rotary::norm(config)
    }
}

fn stack(config: &ModelConfig) -> Stack {
    let attention = Attention {
        qk_norm: if config.qk_norm {
            QkNorm::Head
        } else {
            QkNorm::None
        },
        ..rotary::attention(config)
    };
    let mlp = Mlp {
        activation: Activation::GeGlu,
        ..rotary::mlp(config)
    };
    let layer = Layer {
        attention_norms: NormPlaces::BOTH,
        mlp_norms: NormPlaces::BOTH,
        ..Layer::new(norm(config), attention, mlp)
    };
    rotary::stack(config, layer, &NAMES)
}

/// Lists the layers 0, 2, 4, …, which have Gemma 2's window.
fn even(layers: usize) -> Vec<usize> {
    (0..layers).step_by(2).collect()
}

/// Factor of the embeddings, √C.
fn embedding_multiplier(hidden_size: usize) -> Option<f64> {
    Some((hidden_size as f64).sqrt())
}

/// Refuses scores that are not multiplied by 1/√H, and unusual YaRN.
fn plain_scores(config: &ModelConfig) -> std::result::Result<(), Unsaid> {
    let plain = (config.head_dim as f64).powf(-0.5);
    let stated = config.attention_multiplier.unwrap_or(plain);
    let usual = (stated / plain - 1.0).abs() < 1e-9;
    Unsaid::unless(usual, "query_pre_attn_scalar", "head_dim")?;
    rotary_gguf::plain_yarn(config)
}

/// Reads the parts that both models have.
fn read_shared(
    keys: &Keys<'_>,
    model_type: &str,
    published: &Published,
    taken: &mut Taken,
) -> Result<ModelConfig> {
    let scalar = keys.number("query_pre_attn_scalar")?.unwrap_or(256.0);
    let config = rotary::read_hf(keys, model_type, published, taken)?;
    Ok(ModelConfig {
        sliding_window: keys.window(&published.window)?.or(Some(WINDOW)),
        embedding_multiplier: embedding_multiplier(config.hidden_size),
        attention_multiplier: Some(scalar.powf(-0.5)),
        attn_logit_softcapping: keys.number("attn_logit_softcapping")?,
        final_logit_softcapping: keys.number("final_logit_softcapping")?,
        ..config
    })
}

fn read_hf2(keys: &Keys<'_>, model_type: &str, taken: &mut Taken) -> Result<ModelConfig> {
    let mut defaults = SHAPE.map(|(key, value)| (key, Value::from(value))).to_vec();
    defaults.push(("vocab_size", GEMMA2_VOCABULARY.into()));
    // Without the keys there are caps; null is none.
    let caps = [
        ("attn_logit_softcapping", 50.0),
        ("final_logit_softcapping", 30.0),
    ];
    let absent = caps
        .into_iter()
        .filter(|(key, _)| !keys.0.contains_key(*key));
    defaults.extend(absent.map(|(key, cap)| (key, cap.into())));
    let defaults: Vec<_> = defaults.into_iter().rev().collect();
    let filled = keys.filled(&defaults);
    let keys = &Keys(&filled);
    let config = read_shared(keys, model_type, &PUBLISHED2, taken)?;
    let layers = config.num_hidden_layers;
    let stated = keys.window_layers(layers)?;
    Ok(ModelConfig {
        window_layers: stated.unwrap_or_else(|| even(layers)),
        ..config
    })
}

fn read_hf3(keys: &Keys<'_>, model_type: &str, taken: &mut Taken) -> Result<ModelConfig> {
    let filled = keys.filled(&SHAPE.map(|(key, value)| (key, Value::from(value))));
    let keys = &Keys(&filled);
    let config = read_shared(keys, model_type, &PUBLISHED3, taken)?;
    let layers = config.num_hidden_layers;
    let window_layers = match keys.window_layers(layers)? {
        Some(stated) => stated,
        None => {
            let pattern = "sliding_window_pattern";
            let stated = keys
                .count(pattern)?
                .or(keys.count("_sliding_window_pattern")?);
            match stated.unwrap_or(INTERVAL) {
                0 => return Err(unsupported(pattern, 0, "1 or more")),
                interval => rotary::others(&rotary::every(interval, layers), layers),
            }
        }
    };
    let local = config
        .rope_local_base_freq
        .or(keys.number("rope_local_base_freq")?);
    Ok(ModelConfig {
        window_layers,
        rope_local_base_freq: Some(local.unwrap_or(LOCAL_THETA)),
        ..config
    })
}

fn write_hf(config: &ModelConfig, model_type: &str, class: &str) -> Value {
    // Rounded as far as its root is exact: the scalar is a whole number in every publication.
    let scale = config.attention_multiplier.unwrap_or(1.0);
    let scalar = (scale.powi(-2) * 1e9).round() / 1e9;
    let scalar = if scalar.fract() == 0.0 {
        json!(scalar as u64)
    } else {
        json!(scalar)
    };
    let mut own = vec![
        ("attention_bias", json!(false)),
        ("hidden_activation", json!("gelu_pytorch_tanh")),
        ("query_pre_attn_scalar", scalar),
        ("sliding_window", json!(config.sliding_window)),
        ("layer_types", rotary::layer_types(config)),
        (
            "attn_logit_softcapping",
            json!(config.attn_logit_softcapping),
        ),
        (
            "final_logit_softcapping",
            json!(config.final_logit_softcapping),
        ),
    ];
    if let Some(local) = config.rope_local_base_freq {
        own.push(("rope_local_base_freq", json!(local)));
    }
    let mut value = rotary::write_hf(config, model_type, class, &own);
    if let Some(fields) = value.as_object_mut() {
        fields.remove("hidden_act");
    }
    value
}

fn read_gguf2(keys: &GgufKeys<'_>, tied: bool) -> Result<ModelConfig> {
    let config = of_gguf(keys, &PUBLISHED2, tied)?;
    Ok(ModelConfig {
        window_layers: even(config.num_hidden_layers),
        ..config
    })
}

fn read_gguf3(keys: &GgufKeys<'_>, tied: bool) -> Result<ModelConfig> {
    let config = of_gguf(keys, &PUBLISHED3, tied)?;
    let layers = config.num_hidden_layers;
    let window_layers = match rotary_gguf::gguf_window(keys, INTERVAL)? {
        Some((_, stated)) => stated,
        None => rotary::others(&rotary::every(INTERVAL, layers), layers),
    };
    let local = keys.number("rope.freq_base_swa")?.unwrap_or(LOCAL_THETA);
    Ok(ModelConfig {
        window_layers,
        rope_local_base_freq: Some(local),
        ..config
    })
}

fn of_gguf(keys: &GgufKeys<'_>, published: &Published, tied: bool) -> Result<ModelConfig> {
    let config = rotary_gguf::read_gguf(keys, published, tied)?;
    let window = keys.count("attention.sliding_window")?;
    let model_type = match published.architecture {
        Architecture::Gemma2 => "gemma2",
        _ => "gemma3_text",
    };
    Ok(ModelConfig {
        model_type: model_type.to_owned(),
        sliding_window: window.or(Some(WINDOW)),
        embedding_multiplier: embedding_multiplier(config.hidden_size),
        attention_multiplier: Some((config.head_dim as f64).powf(-0.5)),
        attn_logit_softcapping: keys.number("attn_logit_softcapping")?,
        final_logit_softcapping: keys.number("final_logit_softcapping")?,
        ..config
    })
}

fn gguf_keys(config: &ModelConfig) -> Vec<(&'static str, GgufValue)> {
    let mut keys = rotary_gguf::gguf_keys(config);
    let window = config.sliding_window.unwrap_or(WINDOW);
    keys.push(("attention.sliding_window", GgufValue::of_count(window)));
    for (key, cap) in [
        ("attn_logit_softcapping", config.attn_logit_softcapping),
        ("final_logit_softcapping", config.final_logit_softcapping),
    ] {
        keys.extend(cap.map(|cap| (key, GgufValue::of_f32(cap as f32))));
    }
    keys
}

/// The weights of norms are stored with 1 added.
pub(super) fn order(
    part: &str,
    _end: &str,
    _gguf_architecture: &str,
    _config: &ModelConfig,
) -> Reordering {
    if part.ends_with("norm") {
        Reordering::PlusOne
    } else {
        Reordering::Same
    }
}
