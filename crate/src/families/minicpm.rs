//! MiniCPM (arXiv:2404.06395): Llama's parts with factors of embeddings, additions and logits.

use serde_json::{Value, json};

use super::family::{Effect, Family};
use super::gguf_values::Keys as GgufKeys;
use super::hf_keys::{Keys, Taken};
use super::hf_rope::PublishedRope;
use super::hf_rules::{Accepted, Rule};
use super::llama::{self, LLAMA};
use super::refusal::unsupported;
use super::rotary::{self, Published};
use super::rotary_gguf;
use crate::config::{Architecture, ModelConfig};
use crate::error::Result;
use crate::formats::GgufValue;

/// Word of Hugging Face and of GGUF.
const WORD: &str = "minicpm";

/// Facts that configurations do not state (`configuration_minicpm.py` of the publication).
const PUBLISHED: Published = Published {
    norm_eps: 1e-6,
    rope: PublishedRope {
        words: &["default", "linear", "longrope"],
        ..PublishedRope::USUAL
    },
    tied: true,
    ..Published::of(Architecture::MiniCpm)
};

pub(super) const MINICPM: Family = Family {
    titles: &["MiniCPM"],
    model_types: &[WORD],
    gguf: &[WORD],
    tied: PUBLISHED.tied,
    hf_reads: &["scale_emb", "scale_depth", "dim_model_base"],
    hf_rules: |_| RULES,
    read_hf,
    write_hf,
    read_gguf,
    gguf_word: |_| Ok(WORD),
    gguf_keys: |config| {
        let mut keys = rotary_gguf::gguf_keys(config);
        for (key, value) in [
            ("embedding_scale", config.embedding_multiplier),
            ("residual_scale", config.residual_multiplier),
            ("logit_scale", config.logits_scaling),
        ] {
            keys.push((key, GgufValue::of_f32(value.unwrap_or(1.0) as f32)));
        }
        keys
    },
    gguf_effects: &[
        ("embedding_scale", Effect::Read),
        ("residual_scale", Effect::Read),
        ("logit_scale", Effect::Read),
    ],
    order: llama::paired_rows,
    ..LLAMA
};

/// Rules of the keys of a `config.json`.
const RULES: &[Rule] = &[
    rotary::ACTIVATION,
    ("attention_bias", Accepted::Flag(false, "false")),
    ("sparse_config", Accepted::Nothing),
];

fn read_hf(keys: &Keys<'_>, model_type: &str, taken: &mut Taken) -> Result<ModelConfig> {
    let config = rotary::read_hf(keys, model_type, &PUBLISHED, taken)?;
    let depth = keys.number("scale_depth")?.unwrap_or(1.0);
    let base = keys.number("dim_model_base")?.unwrap_or(1.0);
    if base <= 0.0 {
        return Err(unsupported("dim_model_base", base, "a number above 0"));
    }
    Ok(ModelConfig {
        embedding_multiplier: keys.number("scale_emb")?.filter(rotary::is_factor),
        residual_multiplier: Some(depth / (config.num_hidden_layers as f64).sqrt()),
        logits_scaling: Some(config.hidden_size as f64 / base),
        ..config
    })
}

fn write_hf(config: &ModelConfig) -> Value {
    // Rounded beyond the digits of every publication.
    let rounded = |value: f64| json!((value * 1e9).round() / 1e9);
    let depth = config.residual_multiplier.unwrap_or(1.0);
    let base = config.hidden_size as f64 / config.logits_scaling.unwrap_or(1.0);
    let own = [
        ("attention_bias", json!(false)),
        (
            "scale_emb",
            json!(config.embedding_multiplier.unwrap_or(1.0)),
        ),
        (
            "scale_depth",
            rounded(depth * (config.num_hidden_layers as f64).sqrt()),
        ),
        ("dim_model_base", rounded(base)),
    ];
    rotary::write_hf(config, WORD, "MiniCPMForCausalLM", &own)
}

fn read_gguf(keys: &GgufKeys<'_>, tied: bool) -> Result<ModelConfig> {
    let config = rotary_gguf::read_gguf(keys, &PUBLISHED, tied)?;
    // Early files have no factors: those of the first publication hold, as in llama.cpp.
    let layers = (config.num_hidden_layers as f64).sqrt();
    let number = |key: &str, absent: f64| {
        Ok::<_, crate::error::Error>(Some(keys.number(key)?.unwrap_or(absent)))
    };
    Ok(ModelConfig {
        embedding_multiplier: number("embedding_scale", 12.0)?,
        residual_multiplier: number("residual_scale", 1.4 / layers)?,
        logits_scaling: number("logit_scale", config.hidden_size as f64 / 256.0)?,
        ..config
    })
}
