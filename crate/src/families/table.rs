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

/// Lists words of all families.
pub(super) fn words(of: fn(&Family) -> &'static [&'static str]) -> String {
    FAMILIES.into_iter().flat_map(of).copied().collect::<Vec<_>>().join(", ")
}
