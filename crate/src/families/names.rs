//! Translates tensor names of other formats into Hugging Face state-dict names. No other module does that.

use super::table::family;
use crate::config::{Architecture, ModelConfig};
use crate::formats::GgufValue;

pub(crate) use super::family::HEAD;
pub(crate) use super::gguf_values::ROPE_FREQS;
pub(crate) use super::layout::Layout;

/// Returns PEFT's names of the factors A and B of a module, without the prefix `base_model.model.`.
pub(crate) fn factor_names(module: &str) -> [String; 2] {
    ["lora_A", "lora_B"].map(|factor| format!("{module}.{factor}.weight"))
}

/// Returns Hugging Face's name of a tensor of a GGUF file, and its layout; `None` for tensors that Hugging Face files do not have.
pub(crate) fn from_gguf(name: &str, gguf_architecture: &str, config: &ModelConfig) -> Option<(String, Layout)> {
    let family = family(config.architecture);
    let words = &family.names;
    if let Some((_, outer)) = words.outer.iter().find(|(gguf, _)| *gguf == name) {
        return Some(((*outer).to_string(), Layout::Same));
    }
    let (number, rest) = name.strip_prefix("blk.")?.split_once('.')?;
    let number: usize = number.parse().ok()?;
    let (part, end) = rest.rsplit_once('.')?;
    let (_, inner) = words.parts.iter().find(|(gguf, _)| *gguf == part)?;
    Some((format!("{}{number}.{inner}.{end}", words.blocks), (family.layout)(part, end, gguf_architecture, config)))
}

/// Returns the name of a parameter in a GGUF file, and its layout there: the reverse of [`from_gguf`].
pub(crate) fn to_gguf(name: &str, gguf_architecture: &str, config: &ModelConfig) -> Option<(String, Layout)> {
    let family = family(config.architecture);
    let words = &family.names;
    if let Some((outer, _)) = words.outer.iter().find(|(_, hf)| *hf == name) {
        return Some(((*outer).to_string(), Layout::Same));
    }
    let (number, rest) = name.strip_prefix(words.blocks)?.split_once('.')?;
    let (inner, end) = rest.rsplit_once('.')?;
    let (part, _) = words.parts.iter().find(|(_, hf)| *hf == inner)?;
    Some((format!("blk.{number}.{part}.{end}"), (family.layout)(part, end, gguf_architecture, config)))
}

/// Returns Hugging Face's full name of a tensor of a folder; `None` for buffers that hold nothing trained.
pub(crate) fn from_hf(name: &str, config: &ModelConfig) -> Option<String> {
    (family(config.architecture).full_name)(name).map(std::borrow::Cow::into_owned)
}

/// Returns the block that a tensor belongs to by its name, in any family and format.
pub(crate) fn block_of(name: &str) -> Option<usize> {
    let rest = ["model.layers.", "transformer.h.", "blk."].iter().find_map(|start| name.strip_prefix(start))?;
    rest.split_once('.')?.0.parse().ok()
}

/// Returns the name of the input embedding.
pub(crate) fn embedding(architecture: Architecture) -> &'static str {
    family(architecture).embedding
}

/// Returns the word of `general.architecture` for a model, if GGUF can describe it.
pub(crate) fn gguf_word(config: &ModelConfig) -> Option<&'static str> {
    (family(config.architecture).gguf_word)(config)
}

/// Returns the keys below the architecture that only the model's family has, in the order of a file.
pub(crate) fn gguf_keys(config: &ModelConfig) -> Vec<(&'static str, GgufValue)> {
    (family(config.architecture).gguf_keys)(config)
}
