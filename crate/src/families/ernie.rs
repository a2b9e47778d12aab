//! ERNIE 4.5's dense models (transformers, `configuration_ernie4_5.py`): Llama's parts, with rotary positions in adjacent pairs.

use serde_json::json;

use super::family::Family;
use super::hf_rope::PublishedRope;
use super::hf_rules::{Accepted, Rule};
use super::llama::{self, LLAMA};
use super::rotary::{self, Published};
use super::rotary_gguf;
use crate::config::{Architecture, Attention, Layer, ModelConfig, Rope, Stack};
use crate::state::Reordering;

/// Word of Hugging Face and of GGUF.
const WORD: &str = "ernie4_5";

/// Facts that configurations do not state.
const PUBLISHED: Published = Published {
    context: 131_072,
    head_dim: Some(128),
    rope: PublishedRope {
        theta: 5e5,
        ..PublishedRope::USUAL
    },
    kv_heads: Some(2),
    tied: true,
    ..Published::of(Architecture::Ernie45)
};

pub(super) const ERNIE45: Family = Family {
    titles: &["ERNIE 4.5"],
    model_types: &[WORD],
    gguf: &[WORD],
    tied: PUBLISHED.tied,
    stack,
    hf_rules: |_| RULES,
    read_hf: |keys, model_type, taken| rotary::read_hf(keys, model_type, &PUBLISHED, taken),
    write_hf: |config| {
        rotary::write_hf(
            config,
            WORD,
            "Ernie4_5ForCausalLM",
            &[("use_bias", json!(false))],
        )
    },
    read_gguf: |keys, tied| rotary_gguf::read_gguf(keys, &PUBLISHED, tied),
    gguf_word: |config| rotary_gguf::plain_yarn(config).map(|()| WORD),
    order: |_, _, _, _| Reordering::Same,
    ..LLAMA
};

/// Rules of the keys of a `config.json`.
const RULES: &[Rule] = &[
    rotary::ACTIVATION,
    ("use_bias", Accepted::Flag(false, "false")),
];

fn stack(config: &ModelConfig) -> Stack {
    let attention = adjacent(rotary::attention(config));
    let layer = Layer::new(rotary::norm(config), attention, rotary::mlp(config));
    rotary::stack(config, layer, &llama::NAMES)
}

/// The same attention with rotary positions in adjacent pairs.
pub(super) fn adjacent(attention: Attention) -> Attention {
    let rope = attention.rope.map(|rope| Rope {
        adjacent: true,
        ..rope
    });
    Attention { rope, ..attention }
}
