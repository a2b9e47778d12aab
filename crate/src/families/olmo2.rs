//! OLMo 2 (arXiv:2501.00656) and OLMo 3: norms after attention and MLP, and norms over all queries and all keys; OLMo 3 has windows.

use serde_json::{Value, json};

use super::family::{Effect, Family, HEAD, LAST_NORM};
use super::gguf_values::Keys as GgufKeys;
use super::hf_keys::{Keys, Taken, Window};
use super::hf_rope::PublishedRope;
use super::refusal::unsupported;
use super::rotary::{self, Published};
use super::rotary_gguf;
use crate::config::{
    Architecture, Attention, Layer, ModelConfig, NormPlaces, QkNorm, Slot, Stack, TensorNames,
};
use crate::error::Result;
use crate::state::Reordering;

/// Word of Hugging Face and of GGUF.
const WORD: &str = "olmo2";

/// Word of Hugging Face for models with windows, which GGUF calls by [`WORD`].
const WINDOWED: &str = "olmo3";

/// Length of the window of a configuration that states none (transformers, `configuration_olmo3.py`).
const WINDOW: usize = 4096;

/// Distance of the layers without a window, where no list states them.
const INTERVAL: usize = 4;

/// Facts that configurations do not state (transformers, `configuration_olmo2.py`).
const PUBLISHED: Published = Published {
    qk_norm: true,
    ..Published::of(Architecture::Olmo2)
};

/// The same of models with windows.
const PUBLISHED_WINDOWED: Published = Published {
    rope: PublishedRope {
        theta: 5e5,
        by_kind: true,
        ..PublishedRope::USUAL
    },
    window: Window {
        absent: Some(WINDOW),
        ..Window::STATED
    },
    gguf_window: true,
    ..PUBLISHED
};

pub(super) const OLMO2: Family = Family {
    titles: &["OLMo 2", "OLMo 3"],
    model_types: &[WORD, WINDOWED],
    gguf: &[WORD],
    names: &NAMES,
    peft: &rotary::PEFT,
    tied: PUBLISHED.tied,
    last_norm: rotary::norm,
    stack,
    hf_reads: &["layer_types"],
    hf_rules: |_| rotary::RULES,
    read_hf,
    write_hf,
    read_gguf,
    gguf_word: |config| rotary_gguf::plain_yarn(config).map(|()| WORD),
    gguf_last_norm: LAST_NORM,
    gguf_parts: &[],
    gguf_whole: &[],
    gguf_form: |_| None,
    gguf_keys: |config| {
        let mut keys = rotary_gguf::gguf_keys(config);
        keys.extend(rotary_gguf::window_keys(config));
        keys
    },
    gguf_effects: &[("attention.sliding_window_pattern", Effect::Read)],
    order: |_, _, _, _| Reordering::Same,
    full_name: rotary::full_name,
};

pub(super) const NAMES: TensorNames = TensorNames {
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

fn read_hf(keys: &Keys<'_>, model_type: &str, taken: &mut Taken) -> Result<ModelConfig> {
    if model_type == WORD {
        let config = rotary::read_hf(keys, model_type, &PUBLISHED, taken)?;
        let words = keys.window_layers(config.num_hidden_layers)?;
        return match words.is_some_and(|layers| !layers.is_empty()) {
            true => Err(unsupported(
                "layer_types",
                "sliding_attention",
                "full_attention",
            )),
            false => Ok(config),
        };
    }
    let config = rotary::read_hf(keys, model_type, &PUBLISHED_WINDOWED, taken)?;
    let layers = config.num_hidden_layers;
    let full = rotary::every(INTERVAL, layers);
    let stated = keys.window_layers(layers)?;
    let window_layers = stated.unwrap_or_else(|| rotary::others(&full, layers));
    let sliding_window = keys.count("sliding_window")?.or(Some(WINDOW));
    Ok(with_windows(config, sliding_window, window_layers))
}

/// Gives layers a window, in which positions are never stretched.
fn with_windows(config: ModelConfig, window: Option<usize>, layers: Vec<usize>) -> ModelConfig {
    let local = config.rope_local_base_freq.unwrap_or(config.rope_theta);
    ModelConfig {
        sliding_window: window,
        window_layers: layers,
        rope_local_base_freq: Some(local),
        ..config
    }
}

fn write_hf(config: &ModelConfig) -> Value {
    let bias = ("attention_bias", Value::from(false));
    if config.sliding_window.is_none() {
        return rotary::write_hf(config, WORD, "Olmo2ForCausalLM", &[bias]);
    }
    let own = [
        bias,
        ("sliding_window", json!(config.sliding_window)),
        ("layer_types", rotary::layer_types(config)),
    ];
    rotary::write_hf(config, WINDOWED, "Olmo3ForCausalLM", &own)
}

fn read_gguf(keys: &GgufKeys<'_>, tied: bool) -> Result<ModelConfig> {
    let Some((window, layers)) = rotary_gguf::gguf_window(keys, INTERVAL)? else {
        return rotary_gguf::read_gguf(keys, &PUBLISHED, tied);
    };
    let config = rotary_gguf::read_gguf(keys, &PUBLISHED_WINDOWED, tied)?;
    let config = ModelConfig {
        model_type: WINDOWED.to_owned(),
        ..config
    };
    Ok(with_windows(config, Some(window), layers))
}
