//! Translates tensor names of other formats into Hugging Face state-dict names. No other module does that.

use super::family::{Described, Family};
use super::{FAMILIES, family};
use crate::config::{Architecture, ModelConfig, NormKind, PeftNames, RopeScaling, Slot};
use crate::formats::GgufValue;
use crate::state::Reordering;

pub(crate) use super::family::HEAD;
pub(crate) use super::gguf_values::{ROPE_FACTORS, ROPE_FREQS};

/// Returns PEFT's names of the factors A and B of a module, without the prefix `base_model.model.`.
pub(crate) fn factor_names(module: &str) -> [String; 2] {
    ["lora_A", "lora_B"].map(|factor| format!("{module}.{factor}.weight"))
}

/// True if a tensor of a GGUF file is part of this configuration: divisors of the rotary frequencies.
pub(crate) fn is_of_config(name: &str, config: &ModelConfig) -> bool {
    let long = matches!(config.rope_scaling, RopeScaling::LongRope { .. });
    name == ROPE_FREQS || long && ROPE_FACTORS.contains(&name)
}

/// Returns GGUF's names of the weights outside the blocks.
fn outer(family: &Family) -> [(Slot, &'static str); 4] {
    [
        (Slot::Tokens, "token_embd.weight"),
        (Slot::Positions, "position_embd.weight"),
        (Slot::LastNorm, family.gguf_last_norm),
        (Slot::Head, "output.weight"),
    ]
}

/// Beginnings of the names of tensors outside the blocks that llama.cpp computes with, in GGUF files and folders.
const COMPUTED_WITH: [&str; 9] = [
    "lm_head.bias",
    "model.norm.bias",
    "output.bias",
    "output_norm.bias",
    "per_layer_",
    "position_embd.",
    "rope_factors_",
    "token_embd_norm.",
    "token_types.",
];

/// GGUF's names of the modules of a block, in every family.
const PARTS: [(Slot, &str); 25] = [
    (Slot::AttentionNorm, "attn_norm"),
    (Slot::Query, "attn_q"),
    (Slot::Key, "attn_k"),
    (Slot::Value, "attn_v"),
    (Slot::QueryKeyValue, "attn_qkv"),
    (Slot::QueryNorm, "attn_q_norm"),
    (Slot::KeyNorm, "attn_k_norm"),
    (Slot::Output, "attn_output"),
    (Slot::AttentionPostNorm, "post_attention_norm"),
    (Slot::ConvolutionInput, "shortconv.in_proj"),
    (Slot::Convolution, "shortconv.conv"),
    (Slot::ConvolutionOutput, "shortconv.out_proj"),
    (Slot::DeltaInput, "attn_qkv"),
    (Slot::DeltaGate, "attn_gate"),
    (Slot::DeltaDecay, "ssm_alpha"),
    (Slot::DeltaWeight, "ssm_beta"),
    (Slot::DeltaTaps, "ssm_conv1d"),
    (Slot::DeltaNorm, "ssm_norm"),
    (Slot::DeltaOutput, "ssm_out"),
    (Slot::MlpNorm, "ffn_norm"),
    (Slot::Gate, "ffn_gate"),
    (Slot::Up, "ffn_up"),
    (Slot::GateUp, "ffn_up"),
    (Slot::Down, "ffn_down"),
    (Slot::MlpPostNorm, "post_ffw_norm"),
];

/// Returns GGUF's names of the modules of a block of a family.
fn parts(family: &Family) -> Vec<(Slot, &'static str)> {
    let own = family.gguf_parts;
    let others = PARTS
        .iter()
        .filter(|(slot, _)| !own.iter().any(|(other, _)| other == slot));
    own.iter().chain(others).copied().collect()
}

/// Returns what the second list calls the thing that the first list calls `name`.
fn translated(
    name: &str,
    from: &[(Slot, &'static str)],
    to: &[(Slot, &'static str)],
) -> Option<&'static str> {
    let mut slots = from.iter().filter(|(_, own)| *own == name);
    slots.find_map(|(slot, _)| {
        let found = to.iter().find(|(other, _)| other == slot);
        found.map(|(_, found)| *found)
    })
}

/// Translates the name of a tensor outside the blocks. A LayerNorm has a bias there, no other module.
fn translated_outer(
    name: &str,
    config: &ModelConfig,
    from: &[(Slot, &'static str)],
    to: &[(Slot, &'static str)],
) -> Option<String> {
    if let Some(found) = translated(name, from, to) {
        return Some(found.to_string());
    }
    let weight = format!("{}.weight", name.strip_suffix(".bias")?);
    let biased = (family(config.architecture).last_norm)(config).kind == NormKind::Layer
        && from.contains(&(Slot::LastNorm, &weight));
    translated(&weight, from, to)
        .filter(|_| biased)
        .map(|found| found.replace(".weight", ".bias"))
}

/// Returns the order of a tensor outside the blocks, by its name in a GGUF file.
fn order_outside(name: &str, gguf_architecture: &str, config: &ModelConfig) -> Reordering {
    let (part, end) = name.rsplit_once('.').unwrap_or((name, ""));
    (family(config.architecture).order)(part, end, gguf_architecture, config)
}

/// Returns Hugging Face's name of a tensor of a GGUF file, and the order of its elements; `None` for tensors that Hugging Face files do not have.
pub(crate) fn from_gguf(
    name: &str,
    gguf_architecture: &str,
    config: &ModelConfig,
) -> Option<(String, Reordering)> {
    let family = family(config.architecture);
    if let Some(outer) = translated_outer(name, config, &outer(family), family.names.outer) {
        return Some((outer, order_outside(name, gguf_architecture, config)));
    }
    let (number, rest) = name.strip_prefix("blk.")?.split_once('.')?;
    let number: usize = number.parse().ok()?;
    if let Some((_, own)) = family.gguf_whole.iter().find(|(whole, _)| *whole == rest) {
        let order = (family.order)(rest, "", gguf_architecture, config);
        return Some((format!("{}{number}.{own}", family.names.blocks), order));
    }
    let (part, end) = rest.rsplit_once('.')?;
    let inner = translated(part, &parts(family), family.names.parts)?;
    Some((
        format!("{}{number}.{inner}.{end}", family.names.blocks),
        (family.order)(part, end, gguf_architecture, config),
    ))
}

/// Returns the name of a parameter in a GGUF file, and the order of its elements there: the reverse of [`from_gguf`].
pub(crate) fn to_gguf(
    name: &str,
    gguf_architecture: &str,
    config: &ModelConfig,
) -> Option<(String, Reordering)> {
    let family = family(config.architecture);
    if let Some(outer) = translated_outer(name, config, family.names.outer, &outer(family)) {
        let order = order_outside(&outer, gguf_architecture, config);
        return Some((outer, order));
    }
    let (number, rest) = name.strip_prefix(family.names.blocks)?.split_once('.')?;
    if let Some((whole, _)) = family.gguf_whole.iter().find(|(_, own)| *own == rest) {
        let order = (family.order)(whole, "", gguf_architecture, config);
        return Some((format!("blk.{number}.{whole}"), order));
    }
    let (inner, end) = rest.rsplit_once('.')?;
    let part = translated(inner, family.names.parts, &parts(family))?;
    Some((
        format!("blk.{number}.{part}.{end}"),
        (family.order)(part, end, gguf_architecture, config),
    ))
}

/// Returns the model that GGUF describes in place of this one, if it is another.
pub(crate) fn gguf_form(config: &ModelConfig) -> Option<ModelConfig> {
    (family(config.architecture).gguf_form)(config)
}

/// Returns the names of a module, or of a tensor of it, in the form that GGUF has for the model: two for a matrix of gate and up.
pub(crate) fn names_in_gguf_form(
    name: &str,
    config: &ModelConfig,
    form: &ModelConfig,
) -> Vec<String> {
    let [own, others] = [config, form].map(|config| family(config.architecture).names);
    let apart = config.architecture != form.architecture;
    let block = name.strip_prefix(own.blocks).filter(|_| apart);
    let part = block.and_then(|rest| {
        let (number, rest) = rest.split_once('.')?;
        let mut parts = own.parts.iter();
        parts.find_map(|(slot, part)| {
            let end = rest.strip_prefix(part)?;
            let whole = end.is_empty() || end.starts_with('.');
            whole.then_some((*slot, number.parse().ok()?, end))
        })
    });
    let Some((slot, number, end)) = part else {
        return vec![name.to_string()];
    };
    let slots: &[Slot] = match &slot {
        Slot::GateUp => &[Slot::Gate, Slot::Up],
        other => std::slice::from_ref(other),
    };
    let module = |slot: &Slot| format!("{}{end}", others.module(Some(number), *slot));
    slots.iter().map(module).collect()
}

/// Returns Hugging Face's full name of a tensor of a folder; `None` for buffers that hold nothing trained.
pub(crate) fn from_hf(name: &str, config: &ModelConfig) -> Option<String> {
    (family(config.architecture).full_name)(name).map(std::borrow::Cow::into_owned)
}

/// Returns the block that a tensor belongs to by its name, in any family and format.
pub(crate) fn block_of(name: &str) -> Option<usize> {
    let rest = FAMILIES
        .iter()
        .map(|family| family.names.blocks)
        .chain(["blk."])
        .find_map(|start| name.strip_prefix(start))?;
    rest.split_once('.')?.0.parse().ok()
}

/// Returns whether a tensor outside the blocks takes part in what llama.cpp computes, if the family has no place for it.
pub(crate) fn is_computed_with(stored_name: &str) -> bool {
    COMPUTED_WITH
        .iter()
        .any(|start| stored_name.starts_with(start))
}

/// Returns the name of the input embedding.
pub(crate) fn embedding(architecture: Architecture) -> &'static str {
    family(architecture).names.outer(Slot::Tokens)
}

/// Returns the names by which PEFT knows the modules of an architecture.
pub fn peft_names(architecture: Architecture) -> &'static PeftNames {
    family(architecture).peft
}

/// Returns the word of `general.architecture` for a model, or the reason why GGUF has none.
pub(crate) fn gguf_word(config: &ModelConfig) -> Described {
    (family(config.architecture).gguf_word)(config)
}

/// Returns the keys below the architecture that only the model's family has, in the order of a file.
pub(crate) fn gguf_keys(config: &ModelConfig) -> Vec<(&'static str, GgufValue)> {
    (family(config.architecture).gguf_keys)(config)
}
