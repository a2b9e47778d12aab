//! GLM-Edge and GLM-4-0414 (transformers, `configuration_glm.py` and `configuration_glm4.py`): Llama's parts, with heads that are partly rotated in
//! adjacent pairs, and one matrix for gate and up. GLM-4-0414 has norms before and after attention and MLP.

use serde_json::json;

use super::ernie;
use super::family::Family;
use super::hf_keys::{Keys, Taken};
use super::hf_rope::PublishedRope;
use super::hf_rules::Rule;
use super::llama::{self, LLAMA};
use super::rotary::{self, Published};
use super::rotary_gguf;
use crate::config::{Architecture, Layer, Mlp, ModelConfig, NormPlaces, Slot, Stack, TensorNames};
use crate::error::Result;
use crate::state::Reordering;

/// Word of Hugging Face for models with norms before and after, and of GGUF for them.
const BOTH: &str = "glm4";

/// Facts that configurations do not state.
const PUBLISHED: Published = Published {
    context: 131_072,
    head_dim: Some(128),
    norm_eps: 1.5625e-7,
    rope: PublishedRope {
        partial: Some(0.5),
        ..PublishedRope::USUAL
    },
    kv_heads: Some(2),
    attention_bias: true,
    ..Published::of(Architecture::Glm)
};

pub(super) const GLM: Family = Family {
    titles: &["GLM-Edge", "GLM-4"],
    model_types: &["glm", BOTH],
    gguf: &["chatglm", BOTH],
    names: &NAMES,
    stack,
    hf_rules: |_| RULES,
    read_hf,
    write_hf: |config| {
        let class = if config.model_type == BOTH {
            "Glm4ForCausalLM"
        } else {
            "GlmForCausalLM"
        };
        let share = config.partial_rotary_factor.unwrap_or(1.0);
        let own = [
            ("attention_bias", json!(config.attention_bias)),
            ("partial_rotary_factor", json!(share)),
        ];
        rotary::write_hf(config, &config.model_type, class, &own)
    },
    read_gguf: |keys, tied| {
        let config = rotary_gguf::read_gguf(keys, &PUBLISHED, tied)?;
        let model_type = if keys.family == BOTH { BOTH } else { "glm" };
        Ok(ModelConfig {
            model_type: model_type.to_owned(),
            attention_bias: keys.file.tensor("blk.0.attn_q.bias").is_some(),
            ..config
        })
    },
    gguf_word: |config| {
        let word = if config.model_type == BOTH {
            BOTH
        } else {
            "chatglm"
        };
        if word != BOTH {
            rotary_gguf::whole_heads(config)?;
        }
        rotary_gguf::plain_yarn(config).map(|()| word)
    },
    order: |_, _, _, _| Reordering::Same,
    ..LLAMA
};

/// Rules of the keys of a `config.json`.
const RULES: &[Rule] = &[rotary::ACTIVATION];

const NAMES: TensorNames = TensorNames {
    blocks: "model.layers.",
    parts: &[
        (Slot::Query, "self_attn.q_proj"),
        (Slot::Key, "self_attn.k_proj"),
        (Slot::Value, "self_attn.v_proj"),
        (Slot::Output, "self_attn.o_proj"),
        (Slot::GateUp, "mlp.gate_up_proj"),
        (Slot::Down, "mlp.down_proj"),
        (Slot::AttentionNorm, "input_layernorm"),
        (Slot::AttentionPostNorm, "post_self_attn_layernorm"),
        (Slot::MlpNorm, "post_attention_layernorm"),
        (Slot::MlpPostNorm, "post_mlp_layernorm"),
    ],
    outer: llama::NAMES.outer,
};

fn stack(config: &ModelConfig) -> Stack {
    let mlp = Mlp {
        fused: true,
        ..rotary::mlp(config)
    };
    let places = if config.model_type == BOTH {
        NormPlaces::BOTH
    } else {
        NormPlaces::BEFORE
    };
    let attention = ernie::adjacent(rotary::attention(config));
    let layer = Layer {
        attention_norms: places,
        mlp_norms: places,
        ..Layer::new(rotary::norm(config), attention, mlp)
    };
    rotary::stack(config, layer, &NAMES)
}

fn read_hf(keys: &Keys<'_>, model_type: &str, taken: &mut Taken) -> Result<ModelConfig> {
    let config = rotary::read_hf(keys, model_type, &PUBLISHED, taken)?;
    Ok(ModelConfig {
        attention_bias: keys.bool("attention_bias", PUBLISHED.attention_bias)?,
        ..config
    })
}
