//! Granite 3 and 4 (IBM): Llama's parts with factors of embeddings, scores, additions and logits. Granite 4's dense models are configurations of a
//! family with experts and state spaces, of which they have none; one matrix of theirs makes gate and up.

use serde_json::{Value, json};

use super::family::{Effect, Family, Unsaid};
use super::gguf_values::Keys as GgufKeys;
use super::hf_keys::{Keys, Taken};
use super::hf_rules::{Accepted, Rule};
use super::llama::{self, LLAMA};
use super::refusal::unsupported;
use super::rotary::{self, Published};
use super::rotary_gguf;
use crate::config::{Architecture, Layer, Mlp, ModelConfig, Slot, Stack, TensorNames};
use crate::error::Result;
use crate::formats::GgufValue;

/// Word of Hugging Face for models with Llama's tensors, and of GGUF for both.
const WORD: &str = "granite";

/// Word of Hugging Face for Granite 4.
const HYBRID_WORD: &str = "granitemoehybrid";

/// The factors under Hugging Face's keys, each 1 where it is absent.
const FACTORS: [&str; 4] = [
    "embedding_multiplier",
    "attention_multiplier",
    "residual_multiplier",
    "logits_scaling",
];

/// Key of GGUF that turns rotation off in these models (llama.cpp, `src/models/granite.cpp`).
const ROTATED: &str = "rope.scaling.finetuned";

/// Words of `layer_types` for layers with attention.
const ATTENTION: [&str; 2] = ["attention", "full_attention"];

/// Facts that configurations do not state (transformers, `configuration_granite.py`).
const PUBLISHED: Published = Published {
    norm_eps: 1e-6,
    gguf_scale: true,
    ..Published::of(Architecture::Granite)
};

const PUBLISHED_HYBRID: Published = Published {
    architecture: Architecture::GraniteHybrid,
    ..PUBLISHED
};

pub(super) const GRANITE: Family = Family {
    titles: &["Granite 3"],
    model_types: &[WORD],
    gguf: &[WORD],
    hf_reads: &FACTORS,
    hf_rules: |_| rotary::RULES,
    read_hf: |keys, model_type, taken| {
        let config = rotary::read_hf(keys, model_type, &PUBLISHED, taken)?;
        with_factors(keys, config)
    },
    write_hf: |config| {
        let mut own = factors(config);
        own.extend([("attention_bias", json!(false)), ("mlp_bias", json!(false))]);
        rotary::write_hf(config, WORD, "GraniteForCausalLM", &own)
    },
    read_gguf,
    gguf_word: |config| rotary_gguf::plain_yarn(config).map(|()| WORD),
    gguf_keys,
    gguf_effects: &[
        ("attention.scale", Effect::Read),
        ("embedding_scale", Effect::Read),
        ("residual_scale", Effect::Read),
        ("logit_scale", Effect::Read),
        (ROTATED, Effect::Read),
    ],
    order: llama::paired_rows,
    ..LLAMA
};

pub(super) const HYBRID: Family = Family {
    titles: &["Granite 4 (dense)"],
    model_types: &[HYBRID_WORD],
    gguf: &[],
    names: &NAMES,
    stack: stack_of_hybrid,
    hf_reads: &[
        FACTORS[0],
        FACTORS[1],
        FACTORS[2],
        FACTORS[3],
        "layer_types",
        "num_local_experts",
    ],
    hf_rules: |_| HYBRID_RULES,
    read_hf: read_hybrid,
    write_hf: write_hybrid,
    // Without rotation it has no form, and is refused.
    gguf_word: |config| {
        let rotated = config.no_rope_layers.is_empty();
        Unsaid::unless(rotated, "position_embedding_type", "rope").map(|()| WORD)
    },
    gguf_form: |config| {
        let granite = ModelConfig {
            architecture: Architecture::Granite,
            model_type: WORD.into(),
            ..config.clone()
        };
        config.no_rope_layers.is_empty().then_some(granite)
    },
    ..GRANITE
};

const HYBRID_RULES: &[Rule] = &[
    rotary::ACTIVATION,
    ("attention_bias", Accepted::Flag(false, "false")),
];

const NAMES: TensorNames = TensorNames {
    blocks: "model.layers.",
    parts: &[
        (Slot::Query, "self_attn.q_proj"),
        (Slot::Key, "self_attn.k_proj"),
        (Slot::Value, "self_attn.v_proj"),
        (Slot::Output, "self_attn.o_proj"),
        (Slot::GateUp, "shared_mlp.input_linear"),
        (Slot::Down, "shared_mlp.output_linear"),
        (Slot::AttentionNorm, "input_layernorm"),
        (Slot::MlpNorm, "post_attention_layernorm"),
    ],
    outer: llama::NAMES.outer,
};

fn stack_of_hybrid(config: &ModelConfig) -> Stack {
    let mlp = Mlp {
        fused: true,
        ..rotary::mlp(config)
    };
    let layer = Layer::new(rotary::norm(config), rotary::attention(config), mlp);
    rotary::stack(config, layer, &NAMES)
}

fn with_factors(keys: &Keys<'_>, config: ModelConfig) -> Result<ModelConfig> {
    let [embedding, attention, residual, logits] = FACTORS.map(|key| keys.number(key));
    Ok(ModelConfig {
        embedding_multiplier: embedding?.filter(rotary::is_factor),
        attention_multiplier: Some(attention?.unwrap_or(1.0)),
        residual_multiplier: residual?.filter(rotary::is_factor),
        logits_scaling: logits?.filter(rotary::is_factor),
        ..config
    })
}

fn factors(config: &ModelConfig) -> Vec<(&'static str, Value)> {
    let values = [
        config.embedding_multiplier,
        config.attention_multiplier,
        config.residual_multiplier,
        config.logits_scaling,
    ];
    let written = |value: Option<f64>| json!(value.unwrap_or(1.0));
    FACTORS.into_iter().zip(values.map(written)).collect()
}

fn read_hybrid(keys: &Keys<'_>, model_type: &str, taken: &mut Taken) -> Result<ModelConfig> {
    // Absent, there are 8 experts, and state spaces in every layer.
    match keys.count("num_local_experts")? {
        Some(0) => {}
        Some(experts) => return Err(unsupported("num_local_experts", experts, "0")),
        None => return Err(unsupported("num_local_experts", "8 (left out)", "0")),
    }
    let kinds = keys.get("layer_types").and_then(Value::as_array);
    let kinds = kinds.ok_or_else(|| unsupported("layer_types", "mamba (left out)", "attention"))?;
    let known = |kind: &&Value| kind.as_str().is_some_and(|word| ATTENTION.contains(&word));
    if let Some(other) = kinds.iter().find(|kind| !known(kind)) {
        return Err(unsupported("layer_types", other, "attention"));
    }
    let width = keys.count("shared_intermediate_size")?.unwrap_or(1024);
    let mut filled = keys.0.clone();
    filled.insert("intermediate_size".into(), width.into());
    let config = rotary::read_hf(&Keys(&filled), model_type, &PUBLISHED_HYBRID, taken)?;
    let rotated = keys.text("position_embedding_type")? == Some("rope");
    let layers = config.num_hidden_layers;
    let no_rope_layers = if rotated {
        Vec::new()
    } else {
        (0..layers).collect()
    };
    with_factors(
        keys,
        ModelConfig {
            no_rope_layers,
            ..config
        },
    )
}

fn write_hybrid(config: &ModelConfig) -> Value {
    let rotated = config.no_rope_layers.is_empty();
    let mut own = factors(config);
    own.extend([
        ("attention_bias", json!(false)),
        ("num_local_experts", json!(0)),
        ("num_experts_per_tok", json!(0)),
        ("shared_intermediate_size", json!(config.intermediate_size)),
        (
            "layer_types",
            json!(vec!["attention"; config.num_hidden_layers]),
        ),
        (
            "position_embedding_type",
            // mlx-lm rotates unless it reads this word, transformers if it reads "rope".
            json!(if rotated { "rope" } else { "nope" }),
        ),
    ]);
    rotary::write_hf(config, HYBRID_WORD, "GraniteMoeHybridForCausalLM", &own)
}

fn read_gguf(keys: &GgufKeys<'_>, tied: bool) -> Result<ModelConfig> {
    let config = rotary_gguf::read_gguf(keys, &PUBLISHED, tied)?;
    if let Some(value) = keys.get(ROTATED)
        && value.bool() != Some(true)
    {
        return Err(keys.wrong(ROTATED, "true"));
    }
    // 0 means none, as in llama.cpp.
    let number =
        |key| Ok::<_, crate::error::Error>(keys.number(key)?.filter(|value| *value != 0.0));
    let plain = (config.head_dim as f64).powf(-0.5);
    Ok(ModelConfig {
        embedding_multiplier: number("embedding_scale")?,
        attention_multiplier: Some(number("attention.scale")?.unwrap_or(plain)),
        residual_multiplier: number("residual_scale")?,
        logits_scaling: number("logit_scale")?,
        ..config
    })
}

fn gguf_keys(config: &ModelConfig) -> Vec<(&'static str, GgufValue)> {
    let mut keys = rotary_gguf::gguf_keys(config);
    let plain = (config.head_dim as f64).powf(-0.5);
    for (key, value) in [
        (
            "attention.scale",
            config.attention_multiplier.unwrap_or(plain),
        ),
        (
            "embedding_scale",
            config.embedding_multiplier.unwrap_or(1.0),
        ),
        ("residual_scale", config.residual_multiplier.unwrap_or(1.0)),
        ("logit_scale", config.logits_scaling.unwrap_or(1.0)),
    ] {
        keys.push((key, GgufValue::of_f32(value as f32)));
    }
    keys
}
