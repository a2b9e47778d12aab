//! LFM2 (arXiv:2511.23404): gated short convolutions in most blocks, attention with norms of heads in the others.

use serde_json::{Value, json};

use super::family::{Effect, Family, HEAD};
use super::gguf_values::Keys as GgufKeys;
use super::hf_keys::{Keys, Taken, missing, wrong};
use super::hf_rope::PublishedRope;
use super::hf_rules::{Accepted, Rule};
use super::llama::LLAMA;
use super::refusal::unsupported;
use super::rotary::{self, Published};
use super::rotary_gguf;
use crate::config::{
    Architecture, Attention, Layer, ModelConfig, PeftNames, QkNorm, Slot, Stack, TensorNames,
};
use crate::error::Result;
use crate::formats::GgufValue;
use crate::state::Reordering;

/// Word of Hugging Face and of GGUF.
const WORD: &str = "lfm2";

/// Number of taps of a convolution where none is stated.
const TAPS: usize = 3;

/// Facts that configurations do not state (transformers, `configuration_lfm2.py`).
const PUBLISHED: Published = Published {
    context: 128_000,
    rope: PublishedRope {
        theta: 1e6,
        ..PublishedRope::USUAL
    },
    tied: true,
    qk_norm: true,
    kv_heads_by_layer: true,
    ..Published::of(Architecture::Lfm2)
};

pub(super) const LFM2: Family = Family {
    titles: &["LFM2"],
    model_types: &[WORD],
    gguf: &[WORD],
    names: &NAMES,
    peft: &PeftNames {
        targets: &["q_proj", "v_proj"],
        outside: "model.rotary_emb",
        inside: &[],
    },
    tied: PUBLISHED.tied,
    stack,
    hf_reads: &["layer_types"],
    hf_rules: |_| RULES,
    read_hf,
    write_hf,
    read_gguf,
    gguf_word: |config| rotary_gguf::plain_yarn(config).map(|()| WORD),
    gguf_last_norm: "token_embd_norm.weight",
    gguf_keys: |config| {
        let mut keys = rotary_gguf::gguf_keys(config);
        let heads = |index| match config.conv_layers.contains(&index) {
            true => 0,
            // A model's counts are at most 2^31 − 1.
            false => config.num_key_value_heads as i32,
        };
        let heads: Vec<i32> = (0..config.num_hidden_layers).map(heads).collect();
        keys.push(("attention.head_count_kv", GgufValue::of_i32s(&heads)));
        let taps = config.conv_l_cache.unwrap_or(TAPS);
        keys.push(("shortconv.l_cache", GgufValue::of_count(taps)));
        keys
    },
    gguf_effects: &[("shortconv.l_cache", Effect::Read)],
    order: |part, _, _, _| match part {
        "shortconv.conv" => Reordering::Squeezed,
        _ => Reordering::Same,
    },
    ..LLAMA
};

/// Rules of the keys of a `config.json`.
const RULES: &[Rule] = &[("conv_bias", Accepted::Flag(false, "false"))];

const NAMES: TensorNames = TensorNames {
    blocks: "model.layers.",
    parts: &[
        (Slot::ConvolutionInput, "conv.in_proj"),
        (Slot::Convolution, "conv.conv"),
        (Slot::ConvolutionOutput, "conv.out_proj"),
        (Slot::Query, "self_attn.q_proj"),
        (Slot::Key, "self_attn.k_proj"),
        (Slot::Value, "self_attn.v_proj"),
        (Slot::Output, "self_attn.out_proj"),
        (Slot::QueryNorm, "self_attn.q_layernorm"),
        (Slot::KeyNorm, "self_attn.k_layernorm"),
        (Slot::Gate, "feed_forward.w1"),
        (Slot::Up, "feed_forward.w3"),
        (Slot::Down, "feed_forward.w2"),
        (Slot::AttentionNorm, "operator_norm"),
        (Slot::MlpNorm, "ffn_norm"),
    ],
    outer: &[
        (Slot::Tokens, "model.embed_tokens.weight"),
        (Slot::LastNorm, "model.embedding_norm.weight"),
        (Slot::Head, HEAD),
    ],
};

fn stack(config: &ModelConfig) -> Stack {
    let attention = Attention {
        qk_norm: QkNorm::Head,
        ..rotary::attention(config)
    };
    let layer = Layer::new(rotary::norm(config), attention, rotary::mlp(config));
    rotary::stack(config, layer, &NAMES)
}

/// Width of the MLP, which may be stated as one that is still to be reduced.
fn ffn_width(keys: &Keys<'_>) -> Result<usize> {
    let stated = keys
        .count("block_ff_dim")?
        .or(keys.count("intermediate_size")?);
    let stated = stated.ok_or_else(|| missing("block_ff_dim"))?;
    if !keys.bool("block_auto_adjust_ff_dim", true)? {
        return Ok(stated);
    }
    let factor = keys.number("block_ffn_dim_multiplier")?.unwrap_or(1.0);
    let multiple = keys.count("block_multiple_of")?.unwrap_or(256).max(1);
    let reduced = (2 * stated / 3) as f64 * factor;
    Ok((reduced as usize).next_multiple_of(multiple))
}

/// The layers with a convolution.
fn conv_layers(keys: &Keys<'_>, layers: usize) -> Result<Vec<usize>> {
    if let Some(list) = keys.get("layer_types") {
        let expected = || format!("a list of {layers} words, conv or full_attention");
        let words = list.as_array().filter(|words| words.len() == layers);
        let words = words.ok_or_else(|| wrong("layer_types", &expected(), list))?;
        let mut found = Vec::new();
        for (index, word) in words.iter().enumerate() {
            match word.as_str() {
                Some("conv") => found.push(index),
                Some("full_attention") => {}
                _ => return Err(unsupported("layer_types", word, "conv, full_attention")),
            }
        }
        return Ok(found);
    }
    let Some(list) = keys.get("full_attn_idxs") else {
        return Ok(Vec::new());
    };
    let places = list.as_array().and_then(|places| {
        let place = |place: &Value| usize::try_from(place.as_u64()?).ok();
        places.iter().map(place).collect::<Option<Vec<_>>>()
    });
    let places = places.ok_or_else(|| wrong("full_attn_idxs", "a list of counts", list))?;
    Ok(rotary::others(&places, layers))
}

fn read_hf(keys: &Keys<'_>, model_type: &str, taken: &mut Taken) -> Result<ModelConfig> {
    let tied = keys.bool("tie_embedding", PUBLISHED.tied)?;
    let mut filled = keys.filled(&[("tie_word_embeddings", tied.into())]);
    filled.insert("intermediate_size".into(), ffn_width(keys)?.into());
    if let Some(eps) = keys.get("norm_eps") {
        filled.insert("rms_norm_eps".into(), eps.clone());
    }
    let config = rotary::read_hf(&Keys(&filled), model_type, &PUBLISHED, taken)?;
    let taps = keys.count("conv_L_cache")?.unwrap_or(TAPS);
    if taps == 0 {
        return Err(unsupported("conv_L_cache", 0, "1 or more"));
    }
    Ok(ModelConfig {
        conv_layers: conv_layers(keys, config.num_hidden_layers)?,
        conv_l_cache: Some(taps),
        ..config
    })
}

fn write_hf(config: &ModelConfig) -> Value {
    let kind = |index| match config.conv_layers.contains(&index) {
        true => "conv",
        false => "full_attention",
    };
    let kinds: Value = (0..config.num_hidden_layers).map(kind).collect();
    let own = [
        ("norm_eps", json!(config.norm_eps)),
        ("block_ff_dim", json!(config.intermediate_size)),
        // Without an effect here, but some libraries need them.
        ("block_dim", json!(config.hidden_size)),
        ("block_multiple_of", json!(256)),
        ("block_ffn_dim_multiplier", json!(1.0)),
        ("block_auto_adjust_ff_dim", json!(false)),
        ("conv_bias", json!(false)),
        ("conv_L_cache", json!(config.conv_l_cache.unwrap_or(TAPS))),
        ("tie_embedding", json!(config.tie_word_embeddings)),
        ("layer_types", kinds),
    ];
    rotary::write_hf(config, WORD, "Lfm2ForCausalLM", &own)
}

fn read_gguf(keys: &GgufKeys<'_>, tied: bool) -> Result<ModelConfig> {
    const HEADS: &str = "attention.head_count_kv";
    let layers = keys.need("block_count")?;
    let heads = match keys.get(HEADS).map(GgufValue::counts) {
        Some(Some(heads)) if heads.len() == layers => heads,
        Some(Some(_)) => return Err(keys.wrong(HEADS, "a count for each layer")),
        _ => {
            let absent = keys.need("attention.head_count")?;
            vec![keys.count(HEADS)?.unwrap_or(absent) as u64; layers]
        }
    };
    let config = rotary_gguf::read_gguf(keys, &PUBLISHED, tied)?;
    let of_attention = heads.iter().copied().filter(|heads| *heads > 0);
    let kv_heads = of_attention.clone().next().unwrap_or(1);
    if of_attention.clone().any(|other| other != kv_heads) {
        let expected = "0, or one number for all layers with attention";
        return Err(unsupported(
            &keys.full(HEADS),
            "different per layer",
            expected,
        ));
    }
    Ok(ModelConfig {
        num_key_value_heads: usize::try_from(kv_heads).unwrap_or(usize::MAX),
        conv_layers: (0..layers).filter(|index| heads[*index] == 0).collect(),
        conv_l_cache: Some(keys.count("shortconv.l_cache")?.unwrap_or(TAPS)),
        ..config
    })
}
