//! GGUF's keys of families with RMSNorm, rotary positions and gated MLPs.

use super::family::Unsaid;
use super::gguf_values::Keys as GgufKeys;
use super::refusal::unsupported;
use super::rotary::{Published, every, magnitude, others, rope};
use crate::config::{ModelConfig, RopeScaling};
use crate::error::Result;
use crate::formats::GgufValue;

/// Reads the metadata of a GGUF file, with a window in no layer.
pub(super) fn read_gguf(
    keys: &GgufKeys<'_>,
    published: &Published,
    tied: bool,
) -> Result<ModelConfig> {
    let context = keys.need("context_length")?;
    if !published.gguf_window {
        refuse_gguf_window(keys, context)?;
    }
    let hidden_size = keys.need("embedding_length")?;
    let heads = keys.need_uniform("attention.head_count")?;
    let head_dim = match keys.count("attention.key_length")? {
        Some(dim) => dim,
        None => keys.head_dim(hidden_size, heads)?,
    };
    keys.check_heads(head_dim, published.gguf_scale)?;
    let rotated = match keys.count("rope.dimension_count")? {
        Some(rotated) if published.rope.partial.is_some() && rotated <= head_dim => rotated,
        Some(other) if other != head_dim => {
            return Err(unsupported(
                &keys.full("rope.dimension_count"),
                other,
                &head_dim.to_string(),
            ));
        }
        _ => head_dim,
    };
    let rope_theta = keys.number("rope.freq_base")?.unwrap_or(10_000.0);
    Ok(ModelConfig {
        architecture: published.architecture,
        model_type: keys.family.to_string(),
        vocab_size: keys.vocab_size()?,
        hidden_size,
        intermediate_size: keys.need_uniform("feed_forward_length")?,
        num_hidden_layers: keys.need("block_count")?,
        num_attention_heads: heads,
        num_key_value_heads: match published.kv_heads_by_layer {
            true => heads,
            false => keys.uniform("attention.head_count_kv")?.unwrap_or(heads),
        },
        head_dim,
        max_position_embeddings: context,
        norm_eps: keys
            .number("attention.layer_norm_rms_epsilon")?
            .ok_or_else(|| keys.absent("attention.layer_norm_rms_epsilon"))?,
        rope_theta,
        rope_scaling: keys.rope_scaling(rotated, rope_theta, context)?,
        partial_rotary_factor: (rotated != head_dim).then(|| rotated as f64 / head_dim as f64),
        tie_word_embeddings: tied,
        attention_bias: published.attention_bias,
        qk_norm: published.qk_norm,
        initializer_range: 0.02,
        ..ModelConfig::default()
    })
}

/// Refuses a window that is shorter than the context.
fn refuse_gguf_window(keys: &GgufKeys<'_>, context: usize) -> Result<()> {
    let window = keys.count("attention.sliding_window")?;
    match window.filter(|window| (1..context).contains(window)) {
        Some(window) => Err(unsupported(
            &keys.full("attention.sliding_window"),
            window,
            "absent",
        )),
        None => Ok(()),
    }
}

/// The window of a GGUF file, if it has one, and the layers with it; without a pattern all but the last of every `interval`.
pub(super) fn gguf_window(
    keys: &GgufKeys<'_>,
    interval: usize,
) -> Result<Option<(usize, Vec<usize>)>> {
    const PATTERN: &str = "attention.sliding_window_pattern";
    let layers = keys.need("block_count")?;
    let flags = keys.get(PATTERN).map(|value| (value, value.bools()));
    let windowed = match flags {
        None => others(&every(interval, layers), layers),
        Some((_, Some(flags))) if flags.len() == layers => {
            (0..layers).filter(|index| flags[*index]).collect()
        }
        Some((value, _)) => match value.count().and_then(|count| usize::try_from(count).ok()) {
            Some(stated) if stated > 0 => others(&every(stated, layers), layers),
            _ => return Err(keys.wrong(PATTERN, "a count, or a flag for each layer")),
        },
    };
    let window = keys.count("attention.sliding_window")?;
    let window = window.filter(|window| *window > 0);
    Ok(window.map(|window| (window, windowed)))
}

/// The keys of a window, in the order of a file.
pub(super) fn window_keys(config: &ModelConfig) -> Vec<(&'static str, GgufValue)> {
    let Some(window) = config.sliding_window else {
        return Vec::new();
    };
    let flag = |index| config.window_layers.contains(&index);
    let flags: Vec<bool> = (0..config.num_hidden_layers).map(flag).collect();
    vec![
        ("attention.sliding_window", GgufValue::of_count(window)),
        (
            "attention.sliding_window_pattern",
            GgufValue::of_bools(&flags),
        ),
    ]
}

/// Refuses YaRN with other numbers than those that llama.cpp takes for granted outside Ministral's files.
pub(super) fn plain_yarn(config: &ModelConfig) -> std::result::Result<(), Unsaid> {
    let RopeScaling::Yarn {
        beta_fast,
        beta_slow,
        truncate,
        factor,
        llama_4_scaling_beta,
        ..
    } = &config.rope_scaling
    else {
        return Ok(());
    };
    let derived = if *factor <= 1.0 {
        1.0
    } else {
        0.1 * factor.ln() + 1.0
    };
    let usual = (magnitude(config) / derived - 1.0).abs() < 1e-6
        && (*beta_fast, *beta_slow, *truncate) == (32.0, 1.0, true)
        && llama_4_scaling_beta.is_none();
    let expected =
        "yarn with beta_fast 32, beta_slow 1 and without a factor of its own for attention";
    Unsaid::unless(usual, "rope_scaling", expected)
}

/// Refuses a window that hides something.
pub(super) fn no_window(config: &ModelConfig) -> std::result::Result<(), Unsaid> {
    let expected =
        "absent, or not less than the context, because GGUF has no window for this family";
    Unsaid::unless(!config.sees_less_than_context(), "sliding_window", expected)
}

/// Refuses heads that are together not as wide as the model.
pub(super) fn whole_heads(config: &ModelConfig) -> std::result::Result<(), Unsaid> {
    let whole = config.head_dim * config.num_attention_heads == config.hidden_size;
    Unsaid::unless(
        whole,
        "head_dim",
        "hidden_size divided by num_attention_heads",
    )
}

/// The keys below the architecture that these families have, in the order of a file.
pub(super) fn gguf_keys(config: &ModelConfig) -> Vec<(&'static str, GgufValue)> {
    let count = GgufValue::of_count;
    let number = |value: f64| GgufValue::of_f32(value as f32);
    let mut keys = vec![("attention.layer_norm_rms_epsilon", number(config.norm_eps))];
    if config.head_dim * config.num_attention_heads != config.hidden_size {
        keys.extend([
            ("attention.key_length", count(config.head_dim)),
            ("attention.value_length", count(config.head_dim)),
        ]);
    }
    keys.extend([
        ("rope.dimension_count", count(rope(config).rotated)),
        ("rope.freq_base", number(config.rope_theta)),
    ]);
    match &config.rope_scaling {
        RopeScaling::Linear { factor } => keys.extend([
            ("rope.scaling.type", GgufValue::of_text("linear")),
            ("rope.scaling.factor", number(*factor)),
        ]),
        RopeScaling::Yarn {
            factor,
            original_max_position_embeddings,
            beta_fast,
            beta_slow,
            ..
        } => keys.extend([
            ("rope.scaling.type", GgufValue::of_text("yarn")),
            ("rope.scaling.factor", number(*factor)),
            (
                "rope.scaling.original_context_length",
                count(*original_max_position_embeddings),
            ),
            ("rope.scaling.yarn_beta_fast", number(*beta_fast)),
            ("rope.scaling.yarn_beta_slow", number(*beta_slow)),
        ]),
        RopeScaling::LongRope {
            original_max_position_embeddings,
            ..
        } => keys.extend([
            (
                "rope.scaling.original_context_length",
                count(*original_max_position_embeddings),
            ),
            ("rope.scaling.attn_factor", number(magnitude(config))),
        ]),
        RopeScaling::Default | RopeScaling::Llama3 { .. } | RopeScaling::Dynamic { .. } => {}
    }
    keys
}
