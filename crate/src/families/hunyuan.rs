//! Hunyuan's dense models (transformers, `configuration_hunyuan_v1_dense.py`): Llama's parts, with norms of heads after the rotation.

use serde_json::{Value, json};

use super::family::Family;
use super::hf_keys::{Keys, Taken};
use super::hf_rope::PublishedRope;
use super::llama::{self, LLAMA};
use super::rotary::{self, Published};
use super::rotary_gguf;
use crate::config::{
    Architecture, Attention, Layer, ModelConfig, QkNorm, RopeScaling, Slot, Stack, TensorNames,
};
use crate::error::Result;
use crate::state::Reordering;

/// Word of Hugging Face.
const WORD: &str = "hunyuan_v1_dense";

/// Word of GGUF.
const GGUF_WORD: &str = "hunyuan-dense";

/// Facts that configurations do not state.
const PUBLISHED: Published = Published {
    rope: PublishedRope {
        words: &["default", "dynamic"],
        ..PublishedRope::USUAL
    },
    qk_norm: true,
    ..Published::of(Architecture::Hunyuan)
};

pub(super) const HUNYUAN: Family = Family {
    titles: &["Hunyuan"],
    model_types: &[WORD],
    gguf: &[GGUF_WORD],
    names: &NAMES,
    stack,
    hf_reads: &["use_qk_norm"],
    hf_rules: |_| rotary::RULES,
    read_hf,
    write_hf,
    read_gguf: |keys, tied| {
        let config = rotary_gguf::read_gguf(keys, &PUBLISHED, tied)?;
        Ok(ModelConfig {
            model_type: WORD.to_owned(),
            qk_norm: keys.file.tensor("blk.0.attn_q_norm.weight").is_some(),
            ..config
        })
    },
    gguf_word: |_| Ok(GGUF_WORD),
    gguf_keys: |config| rotary_gguf::gguf_keys(&with_base(config)),
    order: |_, _, _, _| Reordering::Same,
    ..LLAMA
};

const NAMES: TensorNames = TensorNames {
    blocks: "model.layers.",
    parts: &[
        (Slot::Query, "self_attn.q_proj"),
        (Slot::Key, "self_attn.k_proj"),
        (Slot::Value, "self_attn.v_proj"),
        (Slot::Output, "self_attn.o_proj"),
        (Slot::QueryNorm, "self_attn.query_layernorm"),
        (Slot::KeyNorm, "self_attn.key_layernorm"),
        (Slot::Gate, "mlp.gate_proj"),
        (Slot::Up, "mlp.up_proj"),
        (Slot::Down, "mlp.down_proj"),
        (Slot::AttentionNorm, "input_layernorm"),
        (Slot::MlpNorm, "post_attention_layernorm"),
    ],
    outer: llama::NAMES.outer,
};

fn stack(config: &ModelConfig) -> Stack {
    let attention = Attention {
        qk_norm: if config.qk_norm {
            QkNorm::HeadAfterRope
        } else {
            QkNorm::None
        },
        ..rotary::attention(config)
    };
    let layer = Layer::new(rotary::norm(config), attention, rotary::mlp(config));
    rotary::stack(config, layer, &NAMES)
}

fn read_hf(keys: &Keys<'_>, model_type: &str, taken: &mut Taken) -> Result<ModelConfig> {
    let config = rotary::read_hf(keys, model_type, &PUBLISHED, taken)?;
    Ok(ModelConfig {
        qk_norm: keys.bool("use_qk_norm", true)?,
        ..config
    })
}

fn write_hf(config: &ModelConfig) -> Value {
    let own = [
        ("attention_bias", json!(false)),
        ("use_qk_norm", json!(config.qk_norm)),
    ];
    rotary::write_hf(config, WORD, "HunYuanDenseV1ForCausalLM", &own)
}

/// The same model with the base of its frequencies in place of their stretching, as GGUF has it.
fn with_base(config: &ModelConfig) -> ModelConfig {
    let RopeScaling::Dynamic { alpha } = config.rope_scaling else {
        return config.clone();
    };
    let dims = config.head_dim as f64;
    ModelConfig {
        rope_theta: config.rope_theta * alpha.powf(dims / (dims - 2.0)),
        rope_scaling: RopeScaling::Default,
        ..config.clone()
    }
}
