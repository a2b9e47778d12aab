//! The shape of a model, in the words of Hugging Face's `config.json`.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Fault, Result};

/// Widest head that the attention kernels hold in registers.
pub const MAX_HEAD_DIM: usize = 128;

/// The model families that can be trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    /// RMSNorm, RoPE, grouped-query attention, SwiGLU; also Qwen2 (biases) and Qwen3 (q/k norm).
    Llama,
    /// Learned positions, LayerNorm, GELU (tanh form).
    Gpt2,
}

/// How rotary frequencies are stretched for long contexts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rope_type", rename_all = "lowercase")]
pub enum RopeScaling {
    /// Not at all.
    Default,
    /// Every position divided by `factor`.
    Linear {
        /// > 0.
        factor: f64,
    },
    /// Llama 3.1: long wavelengths divided by `factor`, a smooth band between.
    Llama3 {
        /// > 0.
        factor: f64,
        /// Wavelengths above original / low are stretched fully.
        low_freq_factor: f64,
        /// Wavelengths below original / high are left alone.
        high_freq_factor: f64,
        /// Context of the pretraining.
        original_max_position_embeddings: usize,
    },
}

/// Everything that decides a model's tensors and arithmetic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// Family.
    pub architecture: Architecture,
    /// The source's word for the family (`llama`, `qwen2`, `qwen3`, `gpt2`, …), kept for exports.
    pub model_type: String,
    /// V.
    pub vocab_size: usize,
    /// C.
    pub hidden_size: usize,
    /// Width of the MLP.
    pub intermediate_size: usize,
    /// Blocks.
    pub num_hidden_layers: usize,
    /// Query heads.
    pub num_attention_heads: usize,
    /// Key and value heads; divides `num_attention_heads`.
    pub num_key_value_heads: usize,
    /// H; `hidden_size / num_attention_heads` unless overridden.
    pub head_dim: usize,
    /// Longest sequence.
    pub max_position_embeddings: usize,
    /// ε of RMSNorm or LayerNorm.
    pub norm_eps: f64,
    /// RoPE base; unused by GPT-2.
    pub rope_theta: f64,
    /// RoPE stretching.
    pub rope_scaling: RopeScaling,
    /// The head is the input embedding.
    pub tie_word_embeddings: bool,
    /// q, k and v have biases (Qwen2). GPT-2 always has all biases.
    pub attention_bias: bool,
    /// Heads of q and k are RMS-normalised (Qwen3).
    pub qk_norm: bool,
    /// Standard deviation of initial weights for training from scratch.
    pub initializer_range: f64,
}

impl ModelConfig {
    /// Refuses impossible shapes; every fault is listed.
    pub fn validate(&self) -> Result<()> {
        let mut faults = Vec::new();
        let mut positive = |key: &str, value: usize| {
            if value == 0 || value > i32::MAX as usize {
                faults.push(Fault::new(key, "an integer from 1 to 2147483647", value));
            }
        };
        positive("vocab_size", self.vocab_size);
        positive("hidden_size", self.hidden_size);
        positive("intermediate_size", self.intermediate_size);
        positive("num_hidden_layers", self.num_hidden_layers);
        positive("num_attention_heads", self.num_attention_heads);
        positive("num_key_value_heads", self.num_key_value_heads);
        positive("head_dim", self.head_dim);
        positive("max_position_embeddings", self.max_position_embeddings);
        if self.num_key_value_heads > 0 && !self.num_attention_heads.is_multiple_of(self.num_key_value_heads) {
            faults.push(Fault::new(
                "num_key_value_heads",
                format!("a divisor of num_attention_heads {}", self.num_attention_heads),
                self.num_key_value_heads,
            ));
        }
        if self.head_dim > MAX_HEAD_DIM {
            faults.push(Fault::new("head_dim", format!("at most {MAX_HEAD_DIM}"), self.head_dim));
        }
        if self.architecture == Architecture::Llama && !self.head_dim.is_multiple_of(2) {
            faults.push(Fault::new("head_dim", "an even number", self.head_dim));
        }
        let mut finite = |key: &str, value: f64| {
            if !(value.is_finite() && value > 0.0) {
                faults.push(Fault::new(key, "finite and > 0", value));
            }
        };
        finite("norm_eps", self.norm_eps);
        finite("rope_theta", self.rope_theta);
        finite("initializer_range", self.initializer_range);
        match self.rope_scaling {
            RopeScaling::Default => {}
            RopeScaling::Linear { factor } => finite("rope_scaling.factor", factor),
            RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_max_position_embeddings } => {
                finite("rope_scaling.factor", factor);
                finite("rope_scaling.low_freq_factor", low_freq_factor);
                finite("rope_scaling.high_freq_factor - low_freq_factor", high_freq_factor - low_freq_factor);
                finite("rope_scaling.original_max_position_embeddings", original_max_position_embeddings as f64);
            }
        }
        if faults.is_empty() { Ok(()) } else { Err(Error::InvalidConfig(faults)) }
    }
}
