//! The description of a model in a GGUF file: its architecture, and the keys of its shape in a fixed order.

use crate::config::{ModelConfig, Rope, RopeScaling};
use crate::error::{Refusal, Result, word};
use crate::families::{ROPE_FACTORS, ROPE_FREQS, gguf_keys, gguf_word, llama3_of};
use crate::formats::GgufValue;
use crate::model::frequencies;
use crate::state::{Bytes, Tensor};

/// Alignment of the data in the files that are written here.
const ALIGNMENT: u32 = 32;
/// Version of ggml's block formats.
const QUANTIZATION_VERSION: u32 = 2;

/// Keys and values, in the order of the file.
pub(super) type Metadata = Vec<(String, GgufValue)>;

/// GGUF's word for the architecture of a model; `export.gguf.arch` for a model that no architecture describes.
pub(super) fn architecture(config: &ModelConfig) -> Result<&'static str> {
    let refuse = |subject: &str| {
        Refusal::new(word!("export.gguf.arch"))
            .of("gguf")
            .subject(subject)
    };
    let family =
        gguf_word(config).map_err(|unsaid| refuse(unsaid.key).expected(unsaid.expected))?;
    let knows_llama3 = matches!(family, "llama" | "exaone4");
    if !knows_llama3 && matches!(config.rope_scaling, RopeScaling::Llama3 { .. }) {
        return Err(refuse("rope_scaling")
            .expected("llama3 with the architectures llama and exaone4 alone")
            .found(family)
            .into());
    }
    if !divisors_tell(config) {
        let expected = "llama3 with the published bounds: low_freq_factor 1, high_freq_factor 4";
        return Err(refuse("rope_scaling")
            .expected(expected)
            .found("divisors that name no rule")
            .into());
    }
    Ok(family)
}

/// The keys of a model: general ones, then those of its architecture.
pub(super) fn keys(
    config: &ModelConfig,
    family: &str,
    name: &str,
    file_type: Option<u32>,
) -> Metadata {
    let (text, count) = (GgufValue::of_text, GgufValue::of_count);
    let general = [
        ("architecture", Some(text(family))),
        ("name", Some(text(name))),
        ("file_type", file_type.map(GgufValue::of_u32)),
        (
            "quantization_version",
            Some(GgufValue::of_u32(QUANTIZATION_VERSION)),
        ),
        ("alignment", Some(GgufValue::of_u32(ALIGNMENT))),
    ];
    let own = [
        ("vocab_size", config.vocab_size),
        ("context_length", config.max_position_embeddings),
        ("embedding_length", config.hidden_size),
        ("block_count", config.num_hidden_layers),
        ("feed_forward_length", config.intermediate_size),
        ("attention.head_count", config.num_attention_heads),
        ("attention.head_count_kv", config.num_key_value_heads),
    ];
    let general = general
        .into_iter()
        .filter_map(|(key, value)| Some((format!("general.{key}"), value?)));
    let own = own.map(|(key, value)| (key, count(value)));
    let of_family = gguf_keys(config);
    let stated = |key: &str| of_family.iter().any(|(other, _)| *other == key);
    let own: Vec<_> = own.into_iter().filter(|(key, _)| !stated(key)).collect();
    let own = own.into_iter().chain(of_family);
    general
        .chain(own.map(|(key, value)| (format!("{family}.{key}"), value)))
        .collect()
}

/// Divisors of the rotary frequencies as the tensors in which GGUF stores them: one for each frequency of Llama 3.1's rule, or the two lists of
/// LongRoPE.
pub(super) fn divisors(config: &ModelConfig) -> Vec<Tensor> {
    let tensor = |name: &str, values: Vec<f32>| {
        let shape = [values.len() as u64];
        let bytes: Vec<u8> = values.into_iter().flat_map(f32::to_le_bytes).collect();
        Tensor::parameter(name, "F32", &shape, Bytes::host(bytes))
    };
    match &config.rope_scaling {
        RopeScaling::Llama3 { .. } => vec![tensor(ROPE_FREQS, divisor_values(config))],
        RopeScaling::LongRope {
            short_factor,
            long_factor,
            ..
        } => {
            let rounded = |list: &Vec<f64>| list.iter().map(|&factor| factor as f32).collect();
            let lists = [short_factor, long_factor].map(rounded);
            let tensors = ROPE_FACTORS.into_iter().zip(lists);
            tensors.map(|(name, list)| tensor(name, list)).collect()
        }
        _ => Vec::new(),
    }
}

fn divisor_values(config: &ModelConfig) -> Vec<f32> {
    let plain = Rope::plain(config.head_dim, config.rope_theta);
    let scaled = Rope {
        scaling: config.rope_scaling.clone(),
        ..plain.clone()
    };
    let length = config.max_position_embeddings;
    frequencies(&plain, length)
        .into_iter()
        .zip(frequencies(&scaled, length))
        .map(|(plain, scaled)| (plain / scaled) as f32)
        .collect()
}

/// True if a reader can recover llama3's rule from the divisors, which are all that GGUF stores of it. So it is for every other rule.
fn divisors_tell(config: &ModelConfig) -> bool {
    // A divisor holds the factor as f32.
    let rounded = |mut scaling: RopeScaling| {
        if let RopeScaling::Llama3 { factor, .. } = &mut scaling {
            *factor = f64::from(*factor as f32);
        }
        scaling
    };
    let wanted = config.rope_scaling.clone();
    let found = || llama3_of(&divisor_values(config), config.head_dim, config.rope_theta);
    let other = !matches!(wanted, RopeScaling::Llama3 { .. });
    other || found().map(rounded) == Some(rounded(wanted))
}
