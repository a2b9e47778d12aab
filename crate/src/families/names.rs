//! Translates tensor names of other formats into Hugging Face state-dict names. No other module does that.

use crate::config::{Architecture, ModelConfig};

/// Returns PEFT's names of the factors A and B of a module, without the prefix `base_model.model.`.
pub(crate) fn factor_names(module: &str) -> [String; 2] {
    ["lora_A", "lora_B"].map(|factor| format!("{module}.{factor}.weight"))
}

/// Relation between the rows of a stored tensor and the Hugging Face layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Stored as in Hugging Face's files.
    Same,
    /// The rows of each head (the field is the number of heads) alternate between the two halves; Hugging Face stores one half after the other.
    PairedRows(usize),
    /// Stored [out, in]; Hugging Face's Conv1D has [in, out].
    Transposed,
}

impl Layout {
    /// Returns the layout of a tensor of this shape: where the rows are no whole number of heads, or the tensor is no matrix, that of Hugging
    /// Face.
    pub(crate) fn fitting(self, shape: &[usize]) -> Self {
        let rows = shape.first().copied().unwrap_or(1);
        match self {
            Self::PairedRows(heads) if heads == 0 || !rows.is_multiple_of(2 * heads) => Self::Same,
            Self::Transposed if shape.len() != 2 => Self::Same,
            layout => layout,
        }
    }
}

/// The words of one architecture: GGUF's and those of Hugging Face.
struct Words {
    /// Whole names outside the blocks.
    outer: &'static [(&'static str, &'static str)],
    /// Text that Hugging Face puts in front of the number of a block.
    blocks: &'static str,
    /// Parts of a block, without the text after the last dot.
    parts: &'static [(&'static str, &'static str)],
}

const LLAMA: Words = Words {
    outer: &[("token_embd.weight", "model.embed_tokens.weight"), ("output_norm.weight", "model.norm.weight"), ("output.weight", HEAD)],
    blocks: "model.layers.",
    parts: &[
        ("attn_norm", "input_layernorm"),
        ("ffn_norm", "post_attention_layernorm"),
        ("attn_q", "self_attn.q_proj"),
        ("attn_k", "self_attn.k_proj"),
        ("attn_v", "self_attn.v_proj"),
        ("attn_output", "self_attn.o_proj"),
        ("attn_q_norm", "self_attn.q_norm"),
        ("attn_k_norm", "self_attn.k_norm"),
        ("ffn_gate", "mlp.gate_proj"),
        ("ffn_up", "mlp.up_proj"),
        ("ffn_down", "mlp.down_proj"),
    ],
};

const GPT2: Words = Words {
    outer: &[
        ("token_embd.weight", "transformer.wte.weight"),
        ("position_embd.weight", "transformer.wpe.weight"),
        ("output_norm.weight", "transformer.ln_f.weight"),
        ("output_norm.bias", "transformer.ln_f.bias"),
        ("output.weight", HEAD),
    ],
    blocks: "transformer.h.",
    parts: &[
        ("attn_norm", "ln_1"),
        ("ffn_norm", "ln_2"),
        ("attn_qkv", "attn.c_attn"),
        ("attn_output", "attn.c_proj"),
        ("ffn_up", "mlp.c_fc"),
        ("ffn_down", "mlp.c_proj"),
    ],
};

fn words(architecture: Architecture) -> &'static Words {
    match architecture {
        Architecture::Llama => &LLAMA,
        Architecture::Gpt2 => &GPT2,
    }
}

/// Returns the layout of `blk.<n>.<part>.<end>`. Only GGUF's architecture `llama` has rows in pairs; Qwen's files have them as in Hugging Face.
fn layout(part: &str, end: &str, gguf_architecture: &str, config: &ModelConfig) -> Layout {
    match (config.architecture, part) {
        (Architecture::Llama, "attn_q") if gguf_architecture == "llama" => Layout::PairedRows(config.num_attention_heads),
        (Architecture::Llama, "attn_k") if gguf_architecture == "llama" => Layout::PairedRows(config.num_key_value_heads),
        (Architecture::Gpt2, "attn_qkv" | "attn_output" | "ffn_up" | "ffn_down") if end == "weight" => Layout::Transposed,
        _ => Layout::Same,
    }
}

/// Returns Hugging Face's name of a tensor of a GGUF file, and its layout; `None` for tensors that Hugging Face files do not have.
pub(crate) fn from_gguf(name: &str, gguf_architecture: &str, config: &ModelConfig) -> Option<(String, Layout)> {
    let words = words(config.architecture);
    if let Some((_, outer)) = words.outer.iter().find(|(gguf, _)| *gguf == name) {
        return Some(((*outer).to_string(), Layout::Same));
    }
    let (number, rest) = name.strip_prefix("blk.")?.split_once('.')?;
    let number: usize = number.parse().ok()?;
    let (part, end) = rest.rsplit_once('.')?;
    let (_, inner) = words.parts.iter().find(|(gguf, _)| *gguf == part)?;
    Some((format!("{}{number}.{inner}.{end}", words.blocks), layout(part, end, gguf_architecture, config)))
}

/// Returns the name of a parameter in a GGUF file, and its layout there: the reverse of [`from_gguf`].
pub(crate) fn to_gguf(name: &str, gguf_architecture: &str, config: &ModelConfig) -> Option<(String, Layout)> {
    let words = words(config.architecture);
    if let Some((outer, _)) = words.outer.iter().find(|(_, hf)| *hf == name) {
        return Some(((*outer).to_string(), Layout::Same));
    }
    let (number, rest) = name.strip_prefix(words.blocks)?.split_once('.')?;
    let (inner, end) = rest.rsplit_once('.')?;
    let (part, _) = words.parts.iter().find(|(_, hf)| *hf == inner)?;
    Some((format!("blk.{number}.{part}.{end}"), layout(part, end, gguf_architecture, config)))
}

/// Returns Hugging Face's full name of a tensor of a folder; `None` for buffers that hold nothing trained.
pub(crate) fn from_hf(name: &str, config: &ModelConfig) -> Option<String> {
    let buffer = name.ends_with("rotary_emb.inv_freq")
        || config.architecture == Architecture::Gpt2 && (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"));
    if buffer {
        return None;
    }
    let bare = ["wte.", "wpe.", "h.", "ln_f."].iter().any(|start| name.starts_with(start));
    Some(if config.architecture == Architecture::Gpt2 && bare { format!("transformer.{name}") } else { name.to_string() })
}

/// Returns the block that a tensor belongs to by its name, in any family and format.
pub(crate) fn block_of(name: &str) -> Option<usize> {
    let rest = ["model.layers.", "transformer.h.", "blk."].iter().find_map(|start| name.strip_prefix(start))?;
    rest.split_once('.')?.0.parse().ok()
}

/// Returns the name of the input embedding.
pub(crate) fn embedding(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::Llama => "model.embed_tokens.weight",
        Architecture::Gpt2 => "transformer.wte.weight",
    }
}

/// Name of the head, if it is not the input embedding.
pub(crate) const HEAD: &str = "lm_head.weight";

/// Name of GGUF's divisors of the rotary frequencies, which become part of the configuration.
pub(crate) const ROPE_FREQS: &str = "rope_freqs.weight";
