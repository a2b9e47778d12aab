//! Rules that hold for every configuration, whatever file it came from (crate/FORMATS.md, "The model"), and the layers that it describes.

use super::family;
use super::refusal::unsupported;
use crate::config::{Activation, ModelConfig, Norm, NormKind, RopeScaling, Stack};
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

/// Refuses parts of a description that no family has, and that `model` therefore does not build.
///
/// # Errors
/// `model.config.unsupported` for the first of them.
pub fn check_stack(stack: &Stack) -> Result<()> {
    let norms = stack.layers.iter().map(|layer| layer.norm);
    let offset = |norm: &Norm| norm.kind == NormKind::Layer && norm.offset != 0.0;
    if let Some(norm) = norms.chain([stack.last_norm]).find(offset) {
        let what = "offset of the weights of LayerNorm";
        return Err(unsupported(what, norm.offset, "0"));
    }
    for layer in &stack.layers {
        let mlp = &layer.mlp;
        for places in [layer.attention_norms, layer.mlp_norms] {
            if !places.before && !places.after {
                let supported = "before or after attention and MLP, or both";
                return Err(unsupported("norms", "neither before nor after", supported));
            }
        }
        if mlp.fused && mlp.activation != Activation::SwiGlu {
            return Err(unsupported("one matrix for gate and up", "given", "SwiGLU"));
        }
        let Some(attention) = layer.mixer.attention() else {
            continue;
        };
        let Some(rope) = &attention.rope else {
            continue;
        };
        if rope.rotated > attention.head_dim {
            let supported = format!("at most {}", attention.head_dim);
            return Err(unsupported(
                "rotated dimensions of a head",
                rope.rotated,
                &supported,
            ));
        }
        if rope.rotated == 0 {
            return Err(unsupported("rotated dimensions of a head", 0, "2 or more"));
        }
        if !(rope.magnitude.is_finite() && rope.magnitude > 0.0) {
            let what = "factor of the rotated dimensions";
            return Err(unsupported(what, rope.magnitude, "a finite number above 0"));
        }
        // Its ramp lies between logarithms of the base.
        if matches!(rope.scaling, RopeScaling::Yarn { .. }) && rope.base <= 1.0 {
            return Err(unsupported("rope_theta", rope.base, "above 1 with yarn"));
        }
        if rope.query_growth.is_some() && rope.rotated < attention.head_dim {
            let what = "growth of queries with partly rotated heads";
            return Err(unsupported(what, "given", "none"));
        }
    }
    Ok(())
}

/// The number of rotated dimensions of a layer whose pairs are not complete.
fn odd_rotation(stack: &Stack) -> Option<usize> {
    stack
        .ropes()
        .into_iter()
        .map(|(rope, _)| rope.rotated)
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
