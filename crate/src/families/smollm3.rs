//! SmolLM3 (transformers, `configuration_smollm3.py`): Llama's parts, with no rotary positions in every fourth layer (arXiv:2501.18795).

use serde_json::{Value, json};

use super::family::{Family, Unsaid};
use super::hf_keys::{Keys, Taken, Window, wrong};
use super::hf_rope::PublishedRope;
use super::llama::{self, LLAMA};
use super::refusal::unsupported;
use super::rotary::{self, Published};
use super::rotary_gguf;
use crate::config::{Architecture, ModelConfig};
use crate::error::Result;

/// Word of Hugging Face and of GGUF.
const WORD: &str = "smollm3";

/// Key with a number for each layer, which is 1 if the layer has rotary positions, in spite of its name.
const ROTATED: &str = "no_rope_layers";

/// Distance of the layers without rotary positions, where no list states them. GGUF files have no key for it.
const INTERVAL: usize = 4;

/// Facts that configurations do not state.
const PUBLISHED: Published = Published {
    context: 32_768,
    norm_eps: 1e-6,
    rope: PublishedRope {
        theta: 2e6,
        ..PublishedRope::USUAL
    },
    kv_heads: Some(4),
    tied: true,
    window: Window {
        switch: Some("use_sliding_window"),
        ..Window::STATED
    },
    ..Published::of(Architecture::SmolLm3)
};

pub(super) const SMOLLM3: Family = Family {
    titles: &["SmolLM3"],
    model_types: &[WORD],
    gguf: &[WORD],
    tied: PUBLISHED.tied,
    hf_reads: &[ROTATED],
    hf_rules: |_| rotary::RULES,
    read_hf,
    write_hf,
    read_gguf: |keys, tied| {
        let config = rotary_gguf::read_gguf(keys, &PUBLISHED, tied)?;
        let no_rope_layers = rotary::every(INTERVAL, config.num_hidden_layers);
        Ok(ModelConfig {
            no_rope_layers,
            ..config
        })
    },
    gguf_word: |config| {
        let published = rotary::every(INTERVAL, config.num_hidden_layers);
        let expected = "without rotary positions in every fourth layer";
        Unsaid::unless(config.no_rope_layers == published, ROTATED, expected)?;
        rotary_gguf::no_window(config)?;
        rotary_gguf::plain_yarn(config).map(|()| WORD)
    },
    order: llama::paired_rows,
    ..LLAMA
};

fn read_hf(keys: &Keys<'_>, model_type: &str, taken: &mut Taken) -> Result<ModelConfig> {
    let config = rotary::read_hf(keys, model_type, &PUBLISHED, taken)?;
    let layers = config.num_hidden_layers;
    let no_rope_layers = match keys.get(ROTATED) {
        Some(list) => unrotated(list, layers)?,
        None => match keys.count("no_rope_layer_interval")?.unwrap_or(INTERVAL) {
            0 => return Err(unsupported("no_rope_layer_interval", 0, "1 or more")),
            interval => rotary::every(interval, layers),
        },
    };
    // transformers gives the window to the layers without rotary positions.
    let sliding_window = keys.window(&PUBLISHED.window)?;
    let window_layers = sliding_window.map_or(Vec::new(), |_| no_rope_layers.clone());
    Ok(ModelConfig {
        no_rope_layers,
        sliding_window,
        window_layers,
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
        ("mlp_bias", off),
        ("use_sliding_window", config.sliding_window.is_some().into()),
        ("sliding_window", json!(config.sliding_window)),
        (ROTATED, json!(list)),
    ];
    rotary::write_hf(config, WORD, "SmolLM3ForCausalLM", &switches)
}
