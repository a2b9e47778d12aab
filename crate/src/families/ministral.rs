//! Ministral 3 (transformers, `configuration_ministral3.py`): Llama's parts, with queries that grow with their position.

use serde_json::json;

use super::family::{Effect, Family, Unsaid};
use super::hf_keys::{Keys, Taken};
use super::hf_rope::PublishedRope;
use super::llama::{self, LLAMA};
use super::rotary::{self, Published};
use super::rotary_gguf;
use crate::config::{Architecture, ModelConfig, RopeScaling};
use crate::error::Result;
use crate::formats::GgufValue;

/// Word of Hugging Face.
const WORD: &str = "ministral3";

/// Word of GGUF.
const GGUF_WORD: &str = "mistral3";

/// Facts that configurations do not state.
const PUBLISHED: Published = Published {
    context: 262_144,
    head_dim: Some(128),
    rope: PublishedRope {
        theta: 1e6,
        growing: true,
        ..PublishedRope::USUAL
    },
    kv_heads: Some(8),
    ..Published::of(Architecture::Ministral3)
};

pub(super) const MINISTRAL3: Family = Family {
    titles: &["Ministral 3"],
    model_types: &[WORD],
    gguf: &[GGUF_WORD],
    hf_rules: |_| rotary::RULES,
    read_hf,
    write_hf: |config| {
        let own = [("sliding_window", json!(config.sliding_window))];
        let value = rotary::write_hf(config, WORD, "Ministral3ForCausalLM", &own);
        rotary::in_rope_parameters(value)
    },
    read_gguf: |keys, tied| {
        let config = rotary_gguf::read_gguf(keys, &PUBLISHED, tied)?;
        let growth = keys.number("attention.temperature_scale")?;
        let weight = keys.number("rope.scaling.yarn_log_multiplier")?;
        let growth = growth.filter(|beta| *beta != 0.0);
        let weight = weight.filter(|weight| *weight != 0.0);
        let mut scaling = config.rope_scaling.clone();
        if let RopeScaling::Yarn {
            mscale,
            mscale_all_dim,
            llama_4_scaling_beta,
            ..
        } = &mut scaling
        {
            // llama.cpp's multiplier is that of the denominator; the numerator is 1 in every publication.
            (*mscale, *mscale_all_dim) = (weight.map(|_| 1.0), weight);
            *llama_4_scaling_beta = growth;
        }
        Ok(ModelConfig {
            model_type: WORD.to_owned(),
            rope_scaling: scaling,
            ..config
        })
    },
    gguf_word: |config| {
        let plain = match &config.rope_scaling {
            RopeScaling::Yarn {
                attention_factor,
                mscale,
                ..
            } => attention_factor.is_none() && mscale.is_none_or(|mscale| mscale == 1.0),
            _ => true,
        };
        let expected = "yarn with mscale 1, or without it, and without attention_factor";
        Unsaid::unless(plain, "rope_parameters", expected)?;
        rotary_gguf::no_window(config).map(|()| GGUF_WORD)
    },
    gguf_keys,
    gguf_effects: &[
        ("attention.temperature_scale", Effect::Read),
        ("rope.scaling.yarn_log_multiplier", Effect::Read),
    ],
    order: llama::paired_rows,
    ..LLAMA
};

fn read_hf(keys: &Keys<'_>, model_type: &str, taken: &mut Taken) -> Result<ModelConfig> {
    // A configuration without rotary positions has those of the first publication.
    let filled = if keys.get("rope_scaling").is_none() {
        keys.filled(&[(
            "rope_parameters",
            json!({
                "rope_type": "yarn", "rope_theta": 1e6, "factor": 16.0, "original_max_position_embeddings": 16384,
                "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1,
            }),
        )])
    } else {
        keys.0.clone()
    };
    let keys = &Keys(&filled);
    let config = rotary::read_hf(keys, model_type, &PUBLISHED, taken)?;
    Ok(rotary::windowed(config, keys.window(&PUBLISHED.window)?))
}

fn gguf_keys(config: &ModelConfig) -> Vec<(&'static str, GgufValue)> {
    let mut keys = rotary_gguf::gguf_keys(config);
    if let RopeScaling::Yarn {
        mscale_all_dim,
        llama_4_scaling_beta,
        ..
    } = &config.rope_scaling
    {
        for (key, value) in [
            ("rope.scaling.yarn_log_multiplier", mscale_all_dim),
            ("attention.temperature_scale", llama_4_scaling_beta),
        ] {
            keys.extend(value.map(|value| (key, GgufValue::of_f32(value as f32))));
        }
    }
    keys
}
