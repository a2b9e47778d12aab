//! The shape of a model, under the names of Hugging Face's `config.json`.

use serde::{Deserialize, Serialize};

use super::delta_net::DeltaNet;
use super::rules::Rules;
use crate::error::Result;

/// Maximum head dimension that the attention kernels hold in registers.
#[doc(hidden)]
pub const MAX_HEAD_DIM: usize = 256;

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
    /// RMSNorm with 1 + w before and after attention and MLP, GeGLU, windows, caps of scores and logits.
    Gemma2,
    /// As Gemma 2, with norms of heads in place of the caps, and other rotary positions in layers with a window.
    Gemma3,
    /// Llama's parts, with factors of embeddings, scores, additions and logits.
    Granite,
    /// Granite without experts and state spaces, with one matrix for gate and up.
    GraniteHybrid,
    /// Llama's parts, with queries that grow with their position.
    Ministral3,
    /// Llama's parts, with one matrix for queries, keys and values, and one for gate and up.
    Phi3,
    /// RMSNorm after attention and MLP, norms of heads, windows.
    Exaone4,
    /// Llama's parts, with norms of heads after the rotation.
    Hunyuan,
    /// Llama's parts, with rotary positions in adjacent pairs.
    Ernie45,
    /// Llama's parts, with factors of embeddings, additions and logits.
    MiniCpm,
    /// Llama's parts, with partly rotated heads and one matrix for gate and up.
    Glm,
    /// Short convolutions in most blocks, attention with norms of heads in the others.
    Lfm2,
    /// Gated delta rules in most blocks, gated attention in the others.
    Qwen35,
}

/// Stretching of the rotary frequencies for long contexts ([example](crate::model)).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
    /// YaRN (arXiv:2309.00071): divides long wavelengths by `factor`, with a ramp over the dimensions.
    #[doc(hidden)]
    Yarn {
        /// Divisor of long wavelengths, > 0.
        factor: f64,
        /// Context length of the pretraining, in tokens.
        original_max_position_embeddings: usize,
        /// Number of rotations above which a dimension is unchanged.
        beta_fast: f64,
        /// Number of rotations below which a dimension is stretched fully.
        beta_slow: f64,
        /// True if the ends of the ramp are whole dimensions.
        truncate: bool,
        /// Factor of the rotated dimensions, if it is stated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attention_factor: Option<f64>,
        /// Weight of the numerator, from which the factor of the rotated dimensions follows where it is not stated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mscale: Option<f64>,
        /// Weight of the denominator.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mscale_all_dim: Option<f64>,
        /// Growth β of the queries with their position.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        llama_4_scaling_beta: Option<f64>,
    },
    /// LongRoPE (arXiv:2402.13753): divides each frequency by a factor of its own, from one of two lists by the length of a sequence.
    #[doc(hidden)]
    LongRope {
        /// Divisors for sequences up to the original length.
        short_factor: Vec<f64>,
        /// Divisors for longer sequences.
        long_factor: Vec<f64>,
        /// Context length of the pretraining, in tokens.
        original_max_position_embeddings: usize,
        /// Factor of the rotated dimensions, if it is stated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attention_factor: Option<f64>,
        /// Ratio of the lengths, from which that factor follows, if it is stated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        factor: Option<f64>,
    },
    /// Hunyuan: multiplies the base by alpha^(r/(r − 2)) for r rotated dimensions.
    #[doc(hidden)]
    Dynamic {
        /// Factor of the base before the power, > 0.
        alpha: f64,
    },
}

impl RopeScaling {
    /// Lists the numbers that must be finite and above 0, by their keys.
    fn numbers(&self) -> Vec<(&'static str, f64)> {
        const FACTOR: &str = "rope_scaling.factor";
        const ORIGINAL: &str = "rope_scaling.original_max_position_embeddings";
        match self {
            Self::Default => Vec::new(),
            Self::Linear { factor } => vec![(FACTOR, *factor)],
            Self::Llama3 {
                factor,
                low_freq_factor,
                high_freq_factor,
                original_max_position_embeddings,
            } => vec![
                (FACTOR, *factor),
                ("rope_scaling.low_freq_factor", *low_freq_factor),
                (
                    "rope_scaling.high_freq_factor - low_freq_factor",
                    high_freq_factor - low_freq_factor,
                ),
                (ORIGINAL, *original_max_position_embeddings as f64),
            ],
            Self::Yarn {
                factor,
                original_max_position_embeddings,
                beta_fast,
                beta_slow,
                attention_factor,
                ..
            } => vec![
                (FACTOR, *factor),
                (ORIGINAL, *original_max_position_embeddings as f64),
                ("rope_scaling.beta_fast", *beta_fast),
                ("rope_scaling.beta_slow", *beta_slow),
                (
                    "rope_scaling.attention_factor",
                    attention_factor.unwrap_or(1.0),
                ),
            ],
            Self::LongRope {
                short_factor,
                long_factor,
                original_max_position_embeddings,
                attention_factor,
                factor,
            } => {
                let each = |key, list: &[f64]| -> Vec<_> {
                    list.iter().map(|factor| (key, *factor)).collect()
                };
                let mut numbers = each("rope_scaling.short_factor", short_factor);
                numbers.extend(each("rope_scaling.long_factor", long_factor));
                numbers.extend([
                    (ORIGINAL, *original_max_position_embeddings as f64),
                    (
                        "rope_scaling.attention_factor",
                        attention_factor.unwrap_or(1.0),
                    ),
                    (FACTOR, factor.unwrap_or(1.0)),
                ]);
                numbers
            }
            Self::Dynamic { alpha } => vec![("rope_scaling.alpha", *alpha)],
        }
    }
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
    /// Blocks with a short convolution in place of attention, from 0 on, in increasing order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conv_layers: Vec<usize>,
    /// Number of taps of these convolutions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conv_l_cache: Option<usize>,
    /// Blocks with a gated delta rule in place of attention, from 0 on, in increasing order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub linear_layers: Vec<usize>,
    /// The delta rule of these blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linear_attention: Option<DeltaNet>,
    /// Number of keys that a query sees in the blocks of `window_layers`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sliding_window: Option<usize>,
    /// Blocks with the window, from 0 on, in increasing order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub window_layers: Vec<usize>,
    /// Base of the rotary frequencies in blocks with a window, if it is another; these are not stretched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rope_local_base_freq: Option<f64>,
    /// Share of the dimensions of a head that are rotated, if not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial_rotary_factor: Option<f64>,
    /// Factor of the embeddings, if it is not 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding_multiplier: Option<f64>,
    /// Factor of the attention's scores, if it is not 1/√H.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention_multiplier: Option<f64>,
    /// Factor of the outputs of attention and MLP, if it is not 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residual_multiplier: Option<f64>,
    /// Divisor of the logits, if it is not 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logits_scaling: Option<f64>,
    /// Soft cap of the attention's scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attn_logit_softcapping: Option<f64>,
    /// Soft cap of the logits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_logit_softcapping: Option<f64>,
    /// True if the head is the input embedding.
    pub tie_word_embeddings: bool,
    /// True if q, k and v have biases (Qwen2). GPT-2 always has all biases.
    pub attention_bias: bool,
    /// True if q and k are RMS-normalised, each head or, in OLMo 2, all values of a row.
    pub qk_norm: bool,
    /// Standard deviation of the initial weights in training from scratch.
    pub initializer_range: f64,
}

impl ModelConfig {
    /// True if a window hides keys of a text that is as long as the context.
    pub(crate) fn sees_less_than_context(&self) -> bool {
        let window = self
            .sliding_window
            .filter(|_| !self.window_layers.is_empty());
        window.is_some_and(|window| window < self.max_position_embeddings)
    }

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
        for (key, value) in [
            ("rope_local_base_freq", self.rope_local_base_freq),
            ("partial_rotary_factor", self.partial_rotary_factor),
            ("embedding_multiplier", self.embedding_multiplier),
            ("attention_multiplier", self.attention_multiplier),
            ("residual_multiplier", self.residual_multiplier),
            ("logits_scaling", self.logits_scaling),
            ("attn_logit_softcapping", self.attn_logit_softcapping),
            ("final_logit_softcapping", self.final_logit_softcapping),
        ] {
            value.into_iter().for_each(|value| finite(key, value));
        }
        for (key, value) in self.rope_scaling.numbers() {
            finite(key, value);
        }
        if let Some(delta) = &self.linear_attention {
            for (key, value, most) in [
                ("linear_num_key_heads", delta.key_heads, 1024),
                ("linear_num_value_heads", delta.value_heads, 1024),
                ("linear_key_head_dim", delta.key_dim, 4096),
                ("linear_value_head_dim", delta.value_dim, 4096),
                ("linear_conv_kernel_dim", delta.taps, 4096),
            ] {
                let expected = format!("an integer from 1 to {most}");
                rules.check((1..=most).contains(&value), key, expected, value);
            }
            let (keys, values) = (delta.key_heads, delta.value_heads);
            rules.check(
                keys == 0 || values.is_multiple_of(keys),
                "linear_num_value_heads",
                format!("a multiple of linear_num_key_heads {keys}"),
                values,
            );
        }
        rules.check(
            self.sliding_window != Some(0),
            "sliding_window",
            "at least 1",
            0,
        );
        rules.result()
    }
}
