//! The families, in the order in which lists name them.

use super::family::Family;
use super::gpt2::GPT2;
use super::llama::LLAMA;
use super::olmo2::OLMO2;
use crate::config::Architecture;

/// All families.
pub(super) const FAMILIES: [&Family; 3] = [&LLAMA, &GPT2, &OLMO2];

/// Returns the family of an architecture.
pub(super) fn family(architecture: Architecture) -> &'static Family {
    match architecture {
        Architecture::Llama => &LLAMA,
        Architecture::Gpt2 => &GPT2,
        Architecture::Olmo2 => &OLMO2,
    }
}

/// Lists the words of `model_type` in all families.
pub fn model_types() -> Vec<&'static str> {
    FAMILIES
        .into_iter()
        .flat_map(|family| family.model_types)
        .copied()
        .collect()
}

/// Lists the words of `general.architecture` in all families.
pub fn gguf_architectures() -> Vec<&'static str> {
    FAMILIES
        .into_iter()
        .flat_map(|family| family.gguf)
        .copied()
        .collect()
}
