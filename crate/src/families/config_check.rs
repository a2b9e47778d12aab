//! Rules that hold for every configuration, whatever file it came from (crate/FORMATS.md, "The model"), and the layers that it describes.

use super::family;
use super::refusal::unsupported;
use crate::config::{Layer, ModelConfig, Stack};
use crate::error::{Error, Refusal, Result, Word, word};

const MAX_LAYERS: usize = 512;
const MAX_CONTEXT: usize = 1 << 24;

/// Refuses impossible shapes.
pub(crate) fn check(config: &ModelConfig) -> Result<()> {
    let mut refusals = Vec::new();
    let mut check = |holds: bool, code: Word, key: &str, expected: String, found: usize| {
        if !holds {
            let refusal = Refusal::new(code).of("configuration").subject(key);
            refusals.push(refusal.expected(expected).found(found));
        }
    };
    let (heads, kv_heads) = (config.num_attention_heads, config.num_key_value_heads);
    check(
        heads > 0 && config.head_dim > 0,
        word!("model.config.heads"),
        "num_attention_heads",
        "at least one head of at least one value".into(),
        heads,
    );
    check(
        kv_heads > 0 && heads.is_multiple_of(kv_heads),
        word!("model.config.kv-heads"),
        "num_key_value_heads",
        format!("a divisor of {heads}"),
        kv_heads,
    );
    check(
        (1..=MAX_LAYERS).contains(&config.num_hidden_layers),
        word!("model.config.layers"),
        "num_hidden_layers",
        format!("1 to {MAX_LAYERS}"),
        config.num_hidden_layers,
    );
    check(
        (1..=MAX_CONTEXT).contains(&config.max_position_embeddings),
        word!("model.config.context"),
        "max_position_embeddings",
        format!("1 to {MAX_CONTEXT}"),
        config.max_position_embeddings,
    );
    // Some layers, if their number is one that is refused.
    let bounded = ModelConfig {
        num_hidden_layers: config.num_hidden_layers.clamp(1, MAX_LAYERS),
        ..config.clone()
    };
    check(
        odd_rotation(&described(&bounded)).is_none(),
        word!("model.config.rope"),
        "head_dim",
        "an even number".into(),
        config.head_dim,
    );
    if !refusals.is_empty() {
        return Err(Error::Refused(refusals));
    }
    config.validate()?;
    check_stack(&described(config))
}

/// Refuses parts of a description that no family has yet, and that `model` therefore does not build.
///
/// # Errors
/// `model.config.unsupported` for the first of them.
pub fn check_stack(stack: &Stack) -> Result<()> {
    let refuse = |what: &str, found: f64, supported: &str| Err(unsupported(what, found, supported));
    let mut norms = stack
        .layers
        .iter()
        .map(|layer| layer.norm)
        .chain([stack.last_norm]);
    if let Some(norm) = norms.find(|norm| norm.offset != 0.0) {
        return refuse("offset of the weights of norms", norm.offset, "0");
    }
    for Layer {
        attention_norms,
        mlp_norms,
        attention,
        residual_scale,
        ..
    } in &stack.layers
    {
        for places in [attention_norms, mlp_norms] {
            if places.before == places.after {
                return Err(unsupported(
                    "norms",
                    "before and after, or neither",
                    "before or after attention and MLP",
                ));
            }
        }
        if let Some(window) = attention.window {
            return refuse("attention window", window as f64, "none");
        }
        if let Some(scale) = attention.score_scale {
            return refuse("scale of the attention's scores", scale, "1/√H");
        }
        if let Some(cap) = attention.score_cap {
            return refuse("cap of the attention's scores", cap, "none");
        }
        if let Some(rope) = attention
            .rope
            .filter(|rope| rope.head_dim != attention.head_dim)
        {
            return refuse("rotated dimensions of a head", rope.head_dim as f64, "all");
        }
        if *residual_scale != 1.0 {
            return refuse(
                "scale of the residual stream's additions",
                *residual_scale,
                "1",
            );
        }
    }
    for (what, found) in [
        ("scale of embeddings", stack.embedding_scale),
        ("divisor of the logits", stack.logit_divisor),
    ] {
        if found != 1.0 {
            return refuse(what, found, "1");
        }
    }
    stack
        .logit_cap
        .map_or(Ok(()), |cap| refuse("cap of the logits", cap, "none"))
}

/// The number of rotated dimensions of a layer whose pairs are not complete.
fn odd_rotation(stack: &Stack) -> Option<usize> {
    stack
        .ropes()
        .into_iter()
        .map(|rope| rope.head_dim)
        .find(|dim| !dim.is_multiple_of(2))
}

fn described(config: &ModelConfig) -> Stack {
    (family(config.architecture).stack)(config)
}

/// Describes the layers of a model, as its family says.
///
/// # Errors
/// The errors of [`ModelConfig::validate`] and [`check_stack`], and `config.invalid` for heads that cannot be rotated.
pub fn stack(config: &ModelConfig) -> Result<Stack> {
    config.validate()?;
    let stack = described(config);
    if let Some(odd) = odd_rotation(&stack) {
        return Err(Error::invalid("head_dim", "an even number", odd));
    }
    check_stack(&stack)?;
    Ok(stack)
}
