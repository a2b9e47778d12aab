//! EXAONE 4 (arXiv:2507.11407): norms after attention and MLP, and norms of heads. Its larger models have windows, and rotary positions only in the
//! layers with one.

use serde_json::{Value, json};

use super::family::{Effect, Family, Unsaid};
use super::gguf_values::Keys as GgufKeys;
use super::hf_keys::{Keys, Taken, Window, wrong};
use super::olmo2::{self, OLMO2};
use super::refusal::unsupported;
use super::rotary::{self, Published};
use super::rotary_gguf;
use crate::config::{Architecture, Attention, Layer, ModelConfig, NormPlaces, QkNorm, Stack};
use crate::error::Result;

/// Word of Hugging Face and of GGUF.
const WORD: &str = "exaone4";

/// Distance of the layers without a window, where no key states it.
const INTERVAL: usize = 4;

/// Number of layers of the only model whose windows llama.cpp knows.
const WINDOWED_LAYERS: usize = 64;

/// Facts that configurations do not state (transformers, `configuration_exaone4.py`).
const PUBLISHED: Published = Published {
    qk_norm: true,
    window: Window {
        absent: Some(4096),
        ..Window::STATED
    },
    gguf_window: true,
    ..Published::of(Architecture::Exaone4)
};

pub(super) const EXAONE4: Family = Family {
    titles: &["EXAONE 4"],
    model_types: &[WORD],
    gguf: &[WORD],
    tied: PUBLISHED.tied,
    stack,
    hf_reads: &["layer_types"],
    read_hf,
    write_hf: |config| {
        let own = [
            ("sliding_window", json!(config.sliding_window)),
            ("layer_types", rotary::layer_types(config)),
            ("sliding_window_pattern", pattern(config)),
            // A library needs the key.
            ("rope_scaling", json!(null)),
        ];
        rotary::write_hf(config, WORD, "Exaone4ForCausalLM", &own)
    },
    read_gguf,
    gguf_word: |config| {
        rotary_gguf::whole_heads(config)?;
        let full = rotary::every(INTERVAL, config.num_hidden_layers);
        let known = config.sliding_window.is_none()
            || config.num_hidden_layers == WINDOWED_LAYERS && config.no_rope_layers == full;
        let expected = "null, or that of the published model with 64 layers";
        Unsaid::unless(known, "sliding_window", expected)?;
        rotary_gguf::plain_yarn(config).map(|()| WORD)
    },
    gguf_keys: |config| {
        let mut keys = rotary_gguf::gguf_keys(config);
        keys.extend(rotary_gguf::window_keys(config));
        keys
    },
    gguf_effects: &[("attention.sliding_window_pattern", Effect::Read)],
    ..OLMO2
};

fn stack(config: &ModelConfig) -> Stack {
    let attention = Attention {
        qk_norm: QkNorm::Head,
        ..rotary::attention(config)
    };
    let layer = Layer {
        attention_norms: NormPlaces::AFTER,
        mlp_norms: NormPlaces::AFTER,
        ..Layer::new(rotary::norm(config), attention, rotary::mlp(config))
    };
    rotary::stack(config, layer, &olmo2::NAMES)
}

/// Gives layers the window, and the others no rotary positions; without a window every layer has both.
fn with_windows(config: ModelConfig, window: Option<usize>, layers: Vec<usize>) -> ModelConfig {
    match window {
        None => config,
        Some(_) => ModelConfig {
            sliding_window: window,
            no_rope_layers: rotary::others(&layers, config.num_hidden_layers),
            window_layers: layers,
            ..config
        },
    }
}

fn read_hf(keys: &Keys<'_>, model_type: &str, taken: &mut Taken) -> Result<ModelConfig> {
    let config = rotary::read_hf(keys, model_type, &PUBLISHED, taken)?;
    let layers = config.num_hidden_layers;
    let window = keys.window(&PUBLISHED.window)?;
    let stated = keys.window_layers(layers)?;
    let windowed = match stated {
        Some(stated) => stated,
        None => by_pattern(keys.get("sliding_window_pattern"), layers)?,
    };
    Ok(with_windows(config, window, windowed))
}

/// Lists the layers with a window by a pattern: the distance of those without one, or a word with a letter for each layer, L for one with a
/// window, which is repeated.
fn by_pattern(pattern: Option<&Value>, layers: usize) -> Result<Vec<usize>> {
    const KEY: &str = "sliding_window_pattern";
    let interval = |interval| rotary::others(&rotary::every(interval, layers), layers);
    match pattern {
        None => Ok(interval(INTERVAL)),
        Some(Value::String(word)) if !word.is_empty() => {
            if let Some(other) = word.chars().find(|letter| !"LG".contains(*letter)) {
                return Err(unsupported(KEY, other, "L and G"));
            }
            let letters: Vec<char> = word.chars().collect();
            let local = |index: &usize| letters[index % letters.len()] == 'L';
            Ok((0..layers).filter(local).collect())
        }
        Some(number) => match number.as_u64() {
            Some(0) => Err(unsupported(KEY, 0, "1 or more")),
            Some(stated) => Ok(interval(usize::try_from(stated).unwrap_or(usize::MAX))),
            None => Err(wrong(KEY, "a number, or a word of L and G", number)),
        },
    }
}

/// The shortest word of L and G that is repeated over the layers; null without a window.
fn pattern(config: &ModelConfig) -> Value {
    if config.sliding_window.is_none() {
        return Value::Null;
    }
    let local = |index: &usize| config.window_layers.contains(index);
    let letters: Vec<char> = (0..config.num_hidden_layers)
        .map(|index| if local(&index) { 'L' } else { 'G' })
        .collect();
    let repeats = |length: &usize| {
        (*length..letters.len()).all(|index| letters[index] == letters[index - length])
    };
    let length = (1..=letters.len()).find(repeats).unwrap_or(letters.len());
    letters[..length].iter().collect::<String>().into()
}

fn read_gguf(keys: &GgufKeys<'_>, tied: bool) -> Result<ModelConfig> {
    let config = rotary_gguf::read_gguf(keys, &PUBLISHED, tied)?;
    Ok(match rotary_gguf::gguf_window(keys, INTERVAL)? {
        // llama.cpp has windows in the model with 64 layers alone.
        Some((window, layers)) if config.num_hidden_layers == WINDOWED_LAYERS => {
            with_windows(config, Some(window), layers)
        }
        _ => config,
    })
}
