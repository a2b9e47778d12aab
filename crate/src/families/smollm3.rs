//! SmolLM3 (transformers, `configuration_smollm3.py`): Llama's parts, with no rotary positions in every fourth layer (arXiv:2501.18795).

use serde_json::{Value, json};

use super::family::Family;
use super::hf_keys::{Keys, Taken, Window, wrong};
use super::llama::LLAMA;
use super::refusal::unsupported;
use super::rotary::{self, Published};
use crate::config::{Architecture, Attention, Layer, ModelConfig, Stack};
use crate::error::Result;
use crate::state::Reordering;

/// Word of Hugging Face and of GGUF.
const WORD: &str = "smollm3";

/// Key with a number for each layer, which is 1 if the layer has rotary positions, in spite of its name.
const ROTATED: &str = "no_rope_layers";

/// Distance of the layers without rotary positions, where no list states them. GGUF files have no key for it.
const INTERVAL: usize = 4;

/// Facts that configurations do not state.
const PUBLISHED: Published = Published {
    architecture: Architecture::SmolLm3,
    context: 32_768,
    head_dim: None,
    norm_eps: 1e-6,
    rope_theta: 2e6,
    kv_heads: Some(4),
    tied: true,
    attention_bias: false,
    qk_norm: false,
    window: Window {
        switch: Some("use_sliding_window"),
        ..Window::STATED
    },
};

pub(super) const SMOLLM3: Family = Family {
    model_types: &[WORD],
    gguf: &[WORD],
    tied: PUBLISHED.tied,
    stack,
    hf_reads: &[ROTATED],
    hf_rules: |_| rotary::RULES,
    read_hf,
    write_hf,
    read_gguf: |keys, tied| {
        let config = rotary::read_gguf(keys, &PUBLISHED, tied)?;
        let no_rope_layers = every(INTERVAL, config.num_hidden_layers);
        Ok(ModelConfig {
            no_rope_layers,
            ..config
        })
    },
    gguf_word: |config| {
        let published = every(INTERVAL, config.num_hidden_layers);
        (config.no_rope_layers == published).then_some(WORD)
    },
    order,
    ..LLAMA
};

/// Lists the last of every `interval` layers.
fn every(interval: usize, layers: usize) -> Vec<usize> {
    (1..=layers)
        .filter(|number| number.is_multiple_of(interval))
        .map(|number| number - 1)
        .collect()
}

fn stack(config: &ModelConfig) -> Stack {
    let rotated = rotary::attention(config);
    let layer = |index: usize| {
        let rope = rotated.rope;
        let attention = Attention {
            rope: rope.filter(|_| !config.no_rope_layers.contains(&index)),
            ..rotated
        };
        Layer::new(rotary::norm(config), attention, rotary::mlp(config))
    };
    Stack {
        layers: (0..config.num_hidden_layers).map(layer).collect(),
        ..(LLAMA.stack)(config)
    }
}

fn read_hf(keys: &Keys<'_>, model_type: &str, taken: &mut Taken) -> Result<ModelConfig> {
    let config = rotary::read_hf(keys, model_type, &PUBLISHED, taken)?;
    let layers = config.num_hidden_layers;
    let no_rope_layers = match keys.get(ROTATED) {
        Some(list) => unrotated(list, layers)?,
        None => match keys.count("no_rope_layer_interval")?.unwrap_or(INTERVAL) {
            0 => return Err(unsupported("no_rope_layer_interval", 0, "1 or more")),
            interval => every(interval, layers),
        },
    };
    Ok(ModelConfig {
        no_rope_layers,
        ..config
    })
}

/// Reads the list of a `config.json`.
fn unrotated(list: &Value, layers: usize) -> Result<Vec<usize>> {
    let expected =
        || format!("a list of {layers} numbers, 1 for a layer with rotary positions, else 0");
    let refused = || wrong(ROTATED, &expected(), list);
    let given = list.as_array().filter(|given| given.len() == layers);
    let mut found = Vec::new();
    for (index, rotated) in given.ok_or_else(refused)?.iter().enumerate() {
        match rotated.as_u64() {
            Some(1) => {}
            Some(0) => found.push(index),
            _ => return Err(refused()),
        }
    }
    Ok(found)
}

fn write_hf(config: &ModelConfig) -> Value {
    let rotated = |index| u8::from(!config.no_rope_layers.contains(&index));
    let list: Vec<u8> = (0..config.num_hidden_layers).map(rotated).collect();
    let off = Value::from(false);
    let switches = [
        ("attention_bias", off.clone()),
        ("mlp_bias", off.clone()),
        ("use_sliding_window", off),
        (ROTATED, json!(list)),
    ];
    rotary::write_hf(config, WORD, "SmolLM3ForCausalLM", &switches)
}

/// Rows of queries and keys are in pairs as in files of Llama, also in layers without rotary positions.
fn order(part: &str, end: &str, _gguf_architecture: &str, config: &ModelConfig) -> Reordering {
    (LLAMA.order)(part, end, "llama", config)
}
