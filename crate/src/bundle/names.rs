//! The outside world's tensor names, translated into Hugging Face state-dict names. Nowhere else.

use crate::config::{Architecture, ModelConfig};

/// How the rows of a stored tensor become the Hugging Face layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Stored as Hugging Face has it.
    Same,
    /// The rows of each head (the field is the number of heads) alternate between the two halves; Hugging Face stores one half after the
    /// other.
    PairedRows(usize),
    /// Stored [out, in]; Hugging Face's Conv1D has [in, out].
    Transposed,
}

/// Hugging Face's name of a tensor of a GGUF file, and its layout; `None` for tensors that Hugging Face files do not have.
pub(crate) fn from_gguf(name: &str, gguf_architecture: &str, config: &ModelConfig) -> Option<(String, Layout)> {
    match config.architecture {
        Architecture::Llama => llama(name, gguf_architecture == "llama", config),
        Architecture::Gpt2 => gpt2(name),
    }
}

/// Number of the block and the rest of `blk.<n>.<rest>`.
fn block(name: &str) -> Option<(usize, &str)> {
    let (number, rest) = name.strip_prefix("blk.")?.split_once('.')?;
    Some((number.parse().ok()?, rest))
}

fn llama(name: &str, paired: bool, config: &ModelConfig) -> Option<(String, Layout)> {
    let same = |name: &str| Some((name.to_string(), Layout::Same));
    match name {
        "token_embd.weight" => return same("model.embed_tokens.weight"),
        "output_norm.weight" => return same("model.norm.weight"),
        "output.weight" => return same("lm_head.weight"),
        _ => {}
    }
    let (number, rest) = block(name)?;
    let (part, end) = rest.rsplit_once('.')?;
    let inner = match part {
        "attn_norm" => "input_layernorm",
        "ffn_norm" => "post_attention_layernorm",
        "attn_q" => "self_attn.q_proj",
        "attn_k" => "self_attn.k_proj",
        "attn_v" => "self_attn.v_proj",
        "attn_output" => "self_attn.o_proj",
        "attn_q_norm" => "self_attn.q_norm",
        "attn_k_norm" => "self_attn.k_norm",
        "ffn_gate" => "mlp.gate_proj",
        "ffn_up" => "mlp.up_proj",
        "ffn_down" => "mlp.down_proj",
        _ => return None,
    };
    let layout = match part {
        "attn_q" if paired => Layout::PairedRows(config.num_attention_heads),
        "attn_k" if paired => Layout::PairedRows(config.num_key_value_heads),
        _ => Layout::Same,
    };
    Some((format!("model.layers.{number}.{inner}.{end}"), layout))
}

fn gpt2(name: &str) -> Option<(String, Layout)> {
    let outer = match name {
        "token_embd.weight" => "transformer.wte.weight",
        "position_embd.weight" => "transformer.wpe.weight",
        "output_norm.weight" => "transformer.ln_f.weight",
        "output_norm.bias" => "transformer.ln_f.bias",
        "output.weight" => "lm_head.weight",
        _ => "",
    };
    if !outer.is_empty() {
        return Some((outer.to_string(), Layout::Same));
    }
    let (number, rest) = block(name)?;
    let (part, end) = rest.rsplit_once('.')?;
    let (inner, matrix) = match part {
        "attn_norm" => ("ln_1", false),
        "ffn_norm" => ("ln_2", false),
        "attn_qkv" => ("attn.c_attn", true),
        "attn_output" => ("attn.c_proj", true),
        "ffn_up" => ("mlp.c_fc", true),
        "ffn_down" => ("mlp.c_proj", true),
        _ => return None,
    };
    let layout = if matrix && end == "weight" { Layout::Transposed } else { Layout::Same };
    Some((format!("transformer.h.{number}.{inner}.{end}"), layout))
}

/// Hugging Face's full name of a tensor of a folder; `None` for buffers that hold nothing trained.
pub(crate) fn from_hf(name: &str, config: &ModelConfig) -> Option<String> {
    let buffer = name.ends_with("rotary_emb.inv_freq")
        || config.architecture == Architecture::Gpt2 && (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"));
    if buffer {
        return None;
    }
    let bare = ["wte.", "wpe.", "h.", "ln_f."].iter().any(|start| name.starts_with(start));
    Some(if config.architecture == Architecture::Gpt2 && bare { format!("transformer.{name}") } else { name.to_string() })
}

/// The block that a tensor belongs to by its name, in any family and format.
pub(crate) fn block_of(name: &str) -> Option<usize> {
    let rest = ["model.layers.", "transformer.h.", "blk."].iter().find_map(|start| name.strip_prefix(start))?;
    rest.split_once('.')?.0.parse().ok()
}

/// Name of the input embedding.
pub(crate) fn embedding(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::Llama => "model.embed_tokens.weight",
        Architecture::Gpt2 => "transformer.wte.weight",
    }
}

/// Name of the head, if it is not the input embedding.
pub(crate) const HEAD: &str = "lm_head.weight";

/// GGUF's divisors of the rotary frequencies, which become part of the configuration.
pub(crate) const ROPE_FREQS: &str = "rope_freqs.weight";
