//! Phi-3 and Phi-4-mini (arXiv:2404.14219): Llama's parts, with one matrix for queries, keys and values, and one for gate and up.

use serde_json::json;

use super::family::{Effect, Family};
use super::gguf_values::Keys as GgufKeys;
use super::hf_keys::{Keys, Taken};
use super::hf_rope::PublishedRope;
use super::hf_rules::{Accepted, Rule};
use super::llama::{self, LLAMA};
use super::rotary::{self, Published};
use super::rotary_gguf;
use crate::config::{
    Architecture, Attention, Layer, Mlp, ModelConfig, PeftNames, RopeScaling, Slot, Stack,
    TensorNames,
};
use crate::error::Result;
use crate::formats::GgufValue;
use crate::state::Reordering;

/// Word of Hugging Face and of GGUF.
const WORD: &str = "phi3";

/// Context of the pretraining of a configuration that does not state it.
const ORIGINAL_CONTEXT: usize = 4096;

/// Facts that configurations do not state (transformers, `configuration_phi3.py`).
const PUBLISHED: Published = Published {
    context: 4096,
    rope: PublishedRope {
        // Early files say su.
        words: &["default", "longrope", "su"],
        partial: Some(1.0),
        ..PublishedRope::USUAL
    },
    gguf_window: true,
    ..Published::of(Architecture::Phi3)
};

pub(super) const PHI3: Family = Family {
    titles: &["Phi-3", "Phi-4-mini"],
    model_types: &[WORD],
    gguf: &[WORD],
    names: &NAMES,
    peft: &PeftNames {
        targets: &["qkv_proj"],
        outside: "model.rotary_emb",
        inside: &["mlp.activation_fn"],
    },
    stack,
    hf_rules: |_| RULES,
    read_hf,
    write_hf: |config| {
        let own = [
            ("attention_bias", json!(false)),
            ("sliding_window", json!(config.sliding_window)),
        ];
        let mut value = rotary::write_hf(config, WORD, "Phi3ForCausalLM", &own);
        if let RopeScaling::LongRope {
            short_factor,
            long_factor,
            original_max_position_embeddings: original,
            attention_factor,
            factor,
        } = &config.rope_scaling
        {
            value["original_max_position_embeddings"] = json!(original);
            if attention_factor.is_none() && factor.is_none() {
                // Libraries check that these three are there, and some that there are no others.
                value["rope_scaling"] = json!({ "type": "longrope", "short_factor": short_factor, "long_factor": long_factor });
            }
        }
        value
    },
    read_gguf,
    gguf_word: |_| Ok(WORD),
    gguf_keys,
    gguf_effects: &[("rope.scaling.attn_factor", Effect::Read)],
    order: |_, _, _, _| Reordering::Same,
    ..LLAMA
};

/// Rules of the keys of a `config.json`.
const RULES: &[Rule] = &[
    rotary::ACTIVATION,
    ("attention_bias", Accepted::Flag(false, "false")),
    ("short_mscale", Accepted::Nothing),
    ("long_mscale", Accepted::Nothing),
];

const NAMES: TensorNames = TensorNames {
    blocks: "model.layers.",
    parts: &[
        (Slot::QueryKeyValue, "self_attn.qkv_proj"),
        (Slot::Output, "self_attn.o_proj"),
        (Slot::GateUp, "mlp.gate_up_proj"),
        (Slot::Down, "mlp.down_proj"),
        (Slot::AttentionNorm, "input_layernorm"),
        (Slot::MlpNorm, "post_attention_layernorm"),
    ],
    outer: llama::NAMES.outer,
};

fn stack(config: &ModelConfig) -> Stack {
    let attention = Attention {
        fused: true,
        ..rotary::attention(config)
    };
    let mlp = Mlp {
        fused: true,
        ..rotary::mlp(config)
    };
    let layer = Layer::new(rotary::norm(config), attention, mlp);
    rotary::stack(config, layer, &NAMES)
}

fn read_hf(keys: &Keys<'_>, model_type: &str, taken: &mut Taken) -> Result<ModelConfig> {
    // Early files say yarn for LongRoPE.
    let mut filled = keys.filled(&[("original_max_position_embeddings", ORIGINAL_CONTEXT.into())]);
    for key in ["rope_scaling", "rope_parameters"] {
        let Some(fields) = filled.get_mut(key).and_then(|value| value.as_object_mut()) else {
            continue;
        };
        for word in ["type", "rope_type"] {
            if let Some(stated) = fields.get_mut(word).filter(|stated| *stated == "yarn") {
                *stated = json!("longrope");
            }
        }
    }
    let keys = &Keys(&filled);
    let config = rotary::read_hf(keys, model_type, &PUBLISHED, taken)?;
    Ok(rotary::windowed(config, keys.window(&PUBLISHED.window)?))
}

fn read_gguf(keys: &GgufKeys<'_>, tied: bool) -> Result<ModelConfig> {
    let config = rotary_gguf::read_gguf(keys, &PUBLISHED, tied)?;
    let window = keys.count("attention.sliding_window")?;
    Ok(rotary::windowed(
        without_derived(config),
        window.filter(|window| *window > 0),
    ))
}

/// Leaves out a factor of LongRoPE that is the one which follows from the lengths, but for its rounding to f32.
fn without_derived(mut config: ModelConfig) -> ModelConfig {
    let stated = rotary::magnitude(&config);
    let mut derived = config.clone();
    if let RopeScaling::LongRope {
        attention_factor, ..
    } = &mut derived.rope_scaling
    {
        *attention_factor = None;
    }
    if (rotary::magnitude(&derived) - stated).abs() <= 1e-6 {
        config = derived;
    }
    config
}

fn gguf_keys(config: &ModelConfig) -> Vec<(&'static str, GgufValue)> {
    let mut keys = rotary_gguf::gguf_keys(config);
    let window = config.sliding_window.unwrap_or(0);
    keys.push(("attention.sliding_window", GgufValue::of_count(window)));
    keys
}
