//! Families with RMSNorm, rotary positions and SwiGLU: their configurations, and the parts that their layers have in common.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::hf_keys::{Keys, Taken, Window, head_dim};
use super::hf_rope::PublishedRope;
use super::hf_rules::{Accepted, Rule};
use super::refusal::unsupported;
use crate::config::{
    Activation, Architecture, Attention, Layer, Mixer, Mlp, ModelConfig, Norm, NormKind, PeftNames,
    QueryGrowth, Rope, RopeScaling, Stack, TensorNames,
};
use crate::error::Result;

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

/// Facts of a family that its configurations do not state: its parts, and the values of its publication for absent keys.
pub(super) struct Published {
    pub architecture: Architecture,
    pub context: usize,
    pub head_dim: Option<usize>,
    pub norm_eps: f64,
    pub rope: PublishedRope,
    /// Number of key and value heads; that of the query heads if there is none.
    pub kv_heads: Option<usize>,
    pub tied: bool,
    pub attention_bias: bool,
    pub qk_norm: bool,
    pub window: Window,
    /// True if the family reads the window of a GGUF file, which is refused otherwise.
    pub gguf_window: bool,
    /// True if the family reads the heads of keys and values of each layer of a GGUF file.
    pub kv_heads_by_layer: bool,
    /// True if the family reads the scale of the scores of a GGUF file, which is refused otherwise unless it is 1/√H.
    pub gguf_scale: bool,
}

impl Published {
    /// The facts of most families.
    pub const fn of(architecture: Architecture) -> Self {
        Self {
            architecture,
            context: 2048,
            head_dim: None,
            norm_eps: 1e-5,
            rope: PublishedRope::USUAL,
            kv_heads: None,
            tied: false,
            attention_bias: false,
            qk_norm: false,
            window: Window::STATED,
            gguf_window: false,
            kv_heads_by_layer: false,
            gguf_scale: false,
        }
    }
}

/// The norm of every part of a model.
pub(super) fn norm(config: &ModelConfig) -> Norm {
    Norm::new(NormKind::Rms, config.norm_eps)
}

/// Describes attention with rotary positions, without norms of queries and keys.
pub(super) fn attention(config: &ModelConfig) -> Attention {
    Attention {
        rope: Some(rope(config)),
        bias: config.attention_bias,
        score_scale: config.attention_multiplier,
        score_cap: config.attn_logit_softcapping,
        ..Attention::new(
            config.num_attention_heads,
            config.num_key_value_heads,
            config.head_dim,
        )
    }
}

/// Describes the rotary positions of layers that see all keys.
pub(super) fn rope(config: &ModelConfig) -> Rope {
    let share = config.partial_rotary_factor.unwrap_or(1.0);
    Rope {
        rotated: (config.head_dim as f64 * share) as usize,
        scaling: config.rope_scaling.clone(),
        magnitude: magnitude(config),
        query_growth: query_growth(config),
        ..Rope::plain(config.head_dim, config.rope_theta)
    }
}

/// Factor of the rotated dimensions.
pub(super) fn magnitude(config: &ModelConfig) -> f64 {
    match &config.rope_scaling {
        RopeScaling::Yarn {
            factor,
            attention_factor,
            mscale,
            mscale_all_dim,
            ..
        } => {
            let of = |weight: f64| {
                if *factor <= 1.0 {
                    1.0
                } else {
                    0.1 * weight * factor.ln() + 1.0
                }
            };
            let stated = |weight: &Option<f64>| weight.filter(|weight| *weight != 0.0);
            let derived = match (stated(mscale), stated(mscale_all_dim)) {
                (Some(numerator), Some(denominator)) => of(numerator) / of(denominator),
                _ => of(1.0),
            };
            attention_factor.unwrap_or(derived)
        }
        RopeScaling::LongRope {
            original_max_position_embeddings,
            attention_factor,
            factor,
            ..
        } => {
            let original = *original_max_position_embeddings as f64;
            let ratio = factor.unwrap_or(config.max_position_embeddings as f64 / original);
            let derived = if ratio <= 1.0 {
                1.0
            } else {
                (1.0 + ratio.ln() / original.ln()).sqrt()
            };
            attention_factor.unwrap_or(derived)
        }
        _ => 1.0,
    }
}

/// Growth of the queries with their position, if they have one.
fn query_growth(config: &ModelConfig) -> Option<QueryGrowth> {
    match config.rope_scaling {
        RopeScaling::Yarn {
            original_max_position_embeddings,
            llama_4_scaling_beta: Some(beta),
            ..
        } => Some(QueryGrowth {
            beta,
            original: original_max_position_embeddings,
        }),
        _ => None,
    }
}

/// Describes the MLP.
pub(super) fn mlp(config: &ModelConfig) -> Mlp {
    Mlp {
        activation: Activation::SwiGlu,
        width: config.intermediate_size,
        bias: false,
        fused: false,
    }
}

/// Describes a model whose layers differ at most in their windows and rotary positions.
pub(super) fn stack(config: &ModelConfig, layer: Layer, names: &'static TensorNames) -> Stack {
    let described = |index: usize| {
        let mut described = layer.clone();
        described.residual_scale = config.residual_multiplier.unwrap_or(1.0);
        if config.conv_layers.contains(&index) {
            let taps = config.conv_l_cache.unwrap_or(1);
            described.mixer = Mixer::ShortConv { taps };
        }
        if let Some(delta) = config.linear_attention
            && config.linear_layers.contains(&index)
        {
            described.mixer = Mixer::DeltaNet(delta);
        }
        let Mixer::Attention(attention) = &mut described.mixer else {
            return described;
        };
        if config.window_layers.contains(&index) {
            attention.window = config.sliding_window;
            if let (Some(base), Some(rope)) = (config.rope_local_base_freq, &mut attention.rope) {
                *rope = Rope {
                    adjacent: rope.adjacent,
                    rotated: rope.rotated,
                    ..Rope::plain(config.head_dim, base)
                };
            }
        }
        if config.no_rope_layers.contains(&index) {
            attention.rope = None;
        }
        described
    };
    let layers = (0..config.num_hidden_layers).map(described).collect();
    let last_norm = layer.norm;
    Stack {
        tied: config.tie_word_embeddings,
        embedding_scale: config.embedding_multiplier.unwrap_or(1.0),
        logit_divisor: config.logits_scaling.unwrap_or(1.0),
        logit_cap: config.final_logit_softcapping,
        ..Stack::new(layers, last_norm, names)
    }
}

/// Reads the keys of a `config.json`, with a window in no layer.
pub(super) fn read_hf(
    keys: &Keys<'_>,
    model_type: &str,
    published: &Published,
    taken: &mut Taken,
) -> Result<ModelConfig> {
    let (hidden_size, heads) = (keys.need("hidden_size")?, keys.need("num_attention_heads")?);
    let context = keys.context("max_position_embeddings", published.context, taken)?;
    let rope = keys.rope(&published.rope, taken)?;
    let config = ModelConfig {
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
        rope_theta: rope.theta,
        rope_local_base_freq: rope.local_theta,
        partial_rotary_factor: rope.partial,
        tie_word_embeddings: keys.bool("tie_word_embeddings", published.tied)?,
        attention_bias: published.attention_bias,
        qk_norm: published.qk_norm,
        initializer_range: keys.number("initializer_range")?.unwrap_or(0.02),
        ..ModelConfig::default()
    };
    let pairs = (config.head_dim as f64 * rope.partial.unwrap_or(1.0)) as usize / 2;
    let outer = keys.count("original_max_position_embeddings")?;
    let rope_scaling = completed(rope.scaling, outer.unwrap_or(context), pairs)?;
    Ok(ModelConfig {
        rope_scaling,
        ..config
    })
}

/// Completes a stretching whose object states no original length, and checks the lists of LongRoPE.
fn completed(mut scaling: RopeScaling, original: usize, pairs: usize) -> Result<RopeScaling> {
    match &mut scaling {
        RopeScaling::Yarn {
            original_max_position_embeddings: stated,
            ..
        }
        | RopeScaling::LongRope {
            original_max_position_embeddings: stated,
            ..
        } if *stated == 0 => *stated = original,
        _ => {}
    }
    if let RopeScaling::LongRope {
        short_factor,
        long_factor,
        ..
    } = &scaling
    {
        for (key, list) in [("short_factor", short_factor), ("long_factor", long_factor)] {
            if list.len() != pairs {
                return Err(unsupported(
                    &format!("rope_scaling.{key}"),
                    format!("{} numbers", list.len()),
                    &format!("{pairs}, one for each pair of rotated dimensions"),
                ));
            }
        }
    }
    Ok(scaling)
}

/// True for a factor that changes something.
pub(super) fn is_factor(value: &f64) -> bool {
    *value != 1.0
}

/// Gives all layers the window of a configuration.
pub(super) fn windowed(config: ModelConfig, window: Option<usize>) -> ModelConfig {
    let layers = if window.is_some() {
        config.num_hidden_layers
    } else {
        0
    };
    ModelConfig {
        sliding_window: window,
        window_layers: (0..layers).collect(),
        ..config
    }
}

/// Lists the last of every `interval` layers.
pub(super) fn every(interval: usize, layers: usize) -> Vec<usize> {
    (1..=layers)
        .filter(|number| number.is_multiple_of(interval))
        .map(|number| number - 1)
        .collect()
}

/// Lists the layers that are not in a list.
pub(super) fn others(list: &[usize], layers: usize) -> Vec<usize> {
    (0..layers).filter(|index| !list.contains(index)).collect()
}

/// The words of `layer_types`.
pub(super) fn layer_types(config: &ModelConfig) -> Value {
    let word = |index| {
        if config.window_layers.contains(&index) {
            "sliding_attention"
        } else {
            "full_attention"
        }
    };
    (0..config.num_hidden_layers).map(word).collect()
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
    if let Some(share) = config.partial_rotary_factor {
        value["partial_rotary_factor"] = share.into();
    }
    match &config.rope_scaling {
        RopeScaling::Default => {}
        scaling => value["rope_scaling"] = json!(scaling),
    }
    value
}

/// Moves the rotary positions of a written `config.json` into the object that the libraries of newer families read alone.
pub(super) fn in_rope_parameters(mut value: Value) -> Value {
    let scaling = value["rope_scaling"].take();
    let mut parameters =
        json!({ "rope_type": "default", "rope_theta": value["rope_theta"].take() });
    if let (Some(own), Some(scaling)) = (parameters.as_object_mut(), scaling.as_object()) {
        own.extend(scaling.clone());
    }
    if let Some(keys) = value.as_object_mut() {
        keys.remove("rope_scaling");
        keys.remove("rope_theta");
        keys.insert("rope_parameters".to_owned(), parameters);
    }
    value
}

/// The full name of a tensor of a folder; `None` for the frequencies that some exporters write.
pub(super) fn full_name(name: &str) -> Option<Cow<'_, str>> {
    (!name.ends_with("rotary_emb.inv_freq")).then_some(Cow::Borrowed(name))
}
