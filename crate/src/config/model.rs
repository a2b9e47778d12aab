//! The shape of a model, under the names of Hugging Face's `config.json`.

use serde::{Deserialize, Serialize};

use super::rules::Rules;
use crate::error::Result;

/// Maximum head dimension that the attention kernels hold in registers.
#[doc(hidden)]
pub const MAX_HEAD_DIM: usize = 128;

/// Model families that can be trained ([example](crate::model)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    /// RMSNorm, RoPE, grouped-query attention, SwiGLU; also Qwen2 (biases) and Qwen3 (q/k norm).
    #[default]
    Llama,
    /// Learned positions, LayerNorm, GELU (tanh form).
    Gpt2,
    /// RMSNorm after attention and MLP, norms over all queries and all keys, RoPE, SwiGLU.
    Olmo2,
    /// Llama's parts; some layers have no rotary positions.
    SmolLm3,
}

/// Stretching of the rotary frequencies for long contexts ([example](crate::model)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rope_type", rename_all = "lowercase")]
pub enum RopeScaling {
    /// No stretching.
    #[default]
    Default,
    /// Divides every position by `factor`.
    #[doc(hidden)]
    Linear {
        /// Divisor of the positions, > 0.
        factor: f64,
    },
    /// Llama 3.1: divides long wavelengths by `factor`, with a smooth transition.
    #[doc(hidden)]
    Llama3 {
        /// Divisor of long wavelengths, > 0.
        factor: f64,
        /// Wavelengths above original / low are stretched fully.
        low_freq_factor: f64,
        /// Wavelengths below original / high are unchanged.
        high_freq_factor: f64,
        /// Context length of the pretraining, in tokens.
        original_max_position_embeddings: usize,
    },
}

/// All settings that determine a model's tensors and arithmetic. Those of the default are no model: a family states them ([example](crate::model)).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// Family of the model.
    pub architecture: Architecture,
    /// Name of the family in the source (`llama`, `qwen2`, `gpt2`, …), kept for exports.
    pub model_type: String,
    /// Number of tokens in the vocabulary, V.
    pub vocab_size: usize,
    /// Width of the residual stream, C.
    pub hidden_size: usize,
    /// Hidden width of the MLP.
    pub intermediate_size: usize,
    /// Number of blocks.
    pub num_hidden_layers: usize,
    /// Number of query heads.
    pub num_attention_heads: usize,
    /// Number of key and value heads; divides `num_attention_heads`.
    pub num_key_value_heads: usize,
    /// Dimension of a head, H; by default `hidden_size / num_attention_heads`.
    pub head_dim: usize,
    /// Maximum sequence length in tokens.
    pub max_position_embeddings: usize,
    /// ε of RMSNorm or LayerNorm.
    pub norm_eps: f64,
    /// Base of the rotary frequencies; unused by GPT-2.
    pub rope_theta: f64,
    /// Stretching of the rotary frequencies.
    pub rope_scaling: RopeScaling,
    /// Blocks without rotary positions, from 0 on, in increasing order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub no_rope_layers: Vec<usize>,
    /// True if the head is the input embedding.
    pub tie_word_embeddings: bool,
    /// True if q, k and v have biases (Qwen2). GPT-2 always has all biases.
    pub attention_bias: bool,
    /// True if q and k are RMS-normalised: the heads of each in Qwen3, all values of a row in OLMo 2.
    pub qk_norm: bool,
    /// Standard deviation of the initial weights in training from scratch.
    pub initializer_range: f64,
}

impl ModelConfig {
    /// Checks that the shape is possible; what its family asks of it is checked where its layers are described (`families::stack`).
    ///
    /// # Errors
    /// `config.invalid`, listing every fault.
    pub fn validate(&self) -> Result<()> {
        let mut rules = Rules::default();
        let (heads, kv_heads) = (self.num_attention_heads, self.num_key_value_heads);
        for (key, value) in [
            ("vocab_size", self.vocab_size),
            ("hidden_size", self.hidden_size),
            ("intermediate_size", self.intermediate_size),
            ("num_hidden_layers", self.num_hidden_layers),
            ("num_attention_heads", heads),
            ("num_key_value_heads", kv_heads),
            ("head_dim", self.head_dim),
            ("max_position_embeddings", self.max_position_embeddings),
        ] {
            let holds = (1..=i32::MAX as usize).contains(&value);
            rules.check(holds, key, "an integer from 1 to 2147483647", value);
        }
        rules.check(
            kv_heads == 0 || heads.is_multiple_of(kv_heads),
            "num_key_value_heads",
            format!("a divisor of num_attention_heads {heads}"),
            kv_heads,
        );
        rules.check(
            self.head_dim <= MAX_HEAD_DIM,
            "head_dim",
            format!("at most {MAX_HEAD_DIM}"),
            self.head_dim,
        );
        let mut finite = |key: &str, value: f64| {
            rules.check(
                value.is_finite() && value > 0.0,
                key,
                "finite and > 0",
                value,
            );
        };
        finite("norm_eps", self.norm_eps);
        finite("rope_theta", self.rope_theta);
        finite("initializer_range", self.initializer_range);
        match self.rope_scaling {
            RopeScaling::Default => {}
            RopeScaling::Linear { factor } => finite("rope_scaling.factor", factor),
            RopeScaling::Llama3 {
                factor,
                low_freq_factor,
                high_freq_factor,
                original_max_position_embeddings,
            } => {
                finite("rope_scaling.factor", factor);
                finite("rope_scaling.low_freq_factor", low_freq_factor);
                finite(
                    "rope_scaling.high_freq_factor - low_freq_factor",
                    high_freq_factor - low_freq_factor,
                );
                finite(
                    "rope_scaling.original_max_position_embeddings",
                    original_max_position_embeddings as f64,
                );
            }
        }
        rules.result()
    }
}
