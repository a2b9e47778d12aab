//! OLMo 2 (arXiv:2501.00656): norms after attention and MLP, and norms over all queries and all keys.

use super::family::{Family, HEAD};
use super::hf_keys::Window;
use super::rotary::{self, Published};
use crate::config::{
    Architecture, Attention, Layer, ModelConfig, NormPlaces, QkNorm, Slot, Stack, TensorNames,
};
use crate::state::Reordering;

/// Word of Hugging Face and of GGUF.
const WORD: &str = "olmo2";

/// Facts that configurations do not state (transformers, `configuration_olmo2.py`).
const PUBLISHED: Published = Published {
    architecture: Architecture::Olmo2,
    context: 2048,
    head_dim: None,
    norm_eps: 1e-5,
    rope_theta: rotary::ROPE_THETA,
    kv_heads: None,
    tied: false,
    attention_bias: false,
    qk_norm: true,
    window: Window::STATED,
};

pub(super) const OLMO2: Family = Family {
    model_types: &[WORD],
    gguf: &[WORD],
    names: &NAMES,
    peft: &rotary::PEFT,
    tied: PUBLISHED.tied,
    last_norm: rotary::norm,
    stack,
    hf_reads: &[],
    hf_rules: |_| rotary::RULES,
    read_hf: |keys, model_type, taken| rotary::read_hf(keys, model_type, &PUBLISHED, taken),
    write_hf: |config| {
        rotary::write_hf(
            config,
            WORD,
            "Olmo2ForCausalLM",
            &[("attention_bias", false.into())],
        )
    },
    read_gguf: |keys, tied| rotary::read_gguf(keys, &PUBLISHED, tied),
    gguf_word: |_| Some(WORD),
    gguf_keys: rotary::gguf_keys,
    gguf_effects: &[],
    order: |_, _, _, _| Reordering::Same,
    full_name: rotary::full_name,
};

const NAMES: TensorNames = TensorNames {
    blocks: "model.layers.",
    parts: &[
        (Slot::Query, "self_attn.q_proj"),
        (Slot::Key, "self_attn.k_proj"),
        (Slot::Value, "self_attn.v_proj"),
        (Slot::Output, "self_attn.o_proj"),
        (Slot::QueryNorm, "self_attn.q_norm"),
        (Slot::KeyNorm, "self_attn.k_norm"),
        (Slot::Gate, "mlp.gate_proj"),
        (Slot::Up, "mlp.up_proj"),
        (Slot::Down, "mlp.down_proj"),
        (Slot::AttentionPostNorm, "post_attention_layernorm"),
        (Slot::MlpPostNorm, "post_feedforward_layernorm"),
    ],
    outer: &[
        (Slot::Tokens, "model.embed_tokens.weight"),
        (Slot::LastNorm, "model.norm.weight"),
        (Slot::Head, HEAD),
    ],
};

/// Describes layers of the same parts as Llama's, with the norms elsewhere.
fn stack(config: &ModelConfig) -> Stack {
    let attention = Attention {
        qk_norm: QkNorm::All,
        ..rotary::attention(config)
    };
    let places = NormPlaces::AFTER;
    let layer = Layer::new(rotary::norm(config), attention, rotary::mlp(config));
    let layer = Layer {
        attention_norms: places,
        mlp_norms: places,
        ..layer
    };
    rotary::stack(config, layer, &NAMES)
}
