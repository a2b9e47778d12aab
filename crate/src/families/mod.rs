//! Model families: the keys of their configurations, the names of their tensors in every format, and what their layers are made of.

mod adapter_names;
mod config_check;
mod ernie;
mod exaone;
mod family;
mod gemma;
mod gguf_config;
mod gguf_keys;
mod gguf_values;
mod glm;
mod gpt2;
mod granite;
mod hf_config;
mod hf_config_edit;
mod hf_keys;
mod hf_rope;
mod hf_rules;
mod hunyuan;
mod lfm2;
mod llama;
mod minicpm;
mod ministral;
mod mixture;
pub(crate) mod names;
mod olmo2;
mod phi3;
mod qwen35;
mod refusal;
mod rotary;
mod rotary_gguf;
mod smollm3;
mod targets;

pub(crate) use adapter_names::{PAIRS, half, is_original, plain};
pub(crate) use config_check::check;
pub use config_check::{check_stack, stack};
pub use family::Effect;
pub(crate) use gguf_config::config_from_gguf;
pub(crate) use gguf_keys::check_keys;
pub use gguf_keys::{KEYS, effect};
pub(crate) use gguf_values::{Divisors, llama3_of};
pub use hf_config::{config_from_hf, config_to_hf};
pub(crate) use hf_config::{config_of_weights, text_part};
pub use hf_config_edit::edited_config;
pub(crate) use hf_config_edit::{edited, object};
pub use mixture::q4_k_m;
pub use names::peft_names;
pub(crate) use names::{
    HEAD, ROPE_FACTORS, ROPE_FREQS, embedding, factor_names, from_gguf, gguf_form, gguf_keys,
    gguf_word, is_of_config, names_in_gguf_form, to_gguf,
};
pub use targets::Targets;

use self::family::Family;
use crate::config::Architecture;

macro_rules! families {
    ($($architecture:ident: $family:expr,)*) => {
        /// All families, in the order in which lists name them.
        const FAMILIES: &[&Family] = &[$(&$family),*];

        /// Returns the family of an architecture.
        fn family(architecture: Architecture) -> &'static Family {
            match architecture {
                $(Architecture::$architecture => &$family,)*
            }
        }
    };
}

// The list of families: everything that has one row for each of them follows from it.
families! {
    Llama: llama::LLAMA,
    Gpt2: gpt2::GPT2,
    Olmo2: olmo2::OLMO2,
    SmolLm3: smollm3::SMOLLM3,
    Gemma2: gemma::GEMMA2,
    Gemma3: gemma::GEMMA3,
    Granite: granite::GRANITE,
    GraniteHybrid: granite::HYBRID,
    Ministral3: ministral::MINISTRAL3,
    Phi3: phi3::PHI3,
    Exaone4: exaone::EXAONE4,
    Hunyuan: hunyuan::HUNYUAN,
    Ernie45: ernie::ERNIE45,
    MiniCpm: minicpm::MINICPM,
    Glm: glm::GLM,
    Lfm2: lfm2::LFM2,
    Qwen35: qwen35::QWEN35,
}

/// Lists the names of the models that can be opened, for people.
pub fn titles() -> Vec<&'static str> {
    let titles = FAMILIES.iter().flat_map(|family| family.titles);
    titles.copied().collect()
}

/// Lists the words of `model_type` in all families.
pub fn model_types() -> Vec<&'static str> {
    let types = FAMILIES.iter().flat_map(|family| family.model_types);
    types.copied().collect()
}

/// Lists the words of `general.architecture` in all families.
pub fn gguf_architectures() -> Vec<&'static str> {
    let words = FAMILIES.iter().flat_map(|family| family.gguf);
    words.copied().collect()
}
