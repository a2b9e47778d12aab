//! The Llama family: RMSNorm, RoPE, grouped-query attention, SwiGLU; biases of Qwen2 and q/k norm of Qwen3 if the configuration says so.

use burn::module::Module;
use burn::tensor::{Int, Tensor};

use super::attention::{KvCache, attend};
use super::layers::{Embedding, Linear, RmsNorm};
use super::load::WeightSource;
use super::rope::Rope;
use super::{Lookup, Span};
use crate::config::ModelConfig;
use crate::error::Result;
use crate::kernels;

#[derive(Module, Debug)]
struct Attention {
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    q_norm: Option<RmsNorm>,
    k_norm: Option<RmsNorm>,
}

#[derive(Module, Debug)]
struct Mlp {
    gate_proj: Linear,
    up_proj: Linear,
    down_proj: Linear,
}

#[derive(Module, Debug)]
struct Block {
    input_layernorm: RmsNorm,
    self_attn: Attention,
    post_attention_layernorm: RmsNorm,
    mlp: Mlp,
}

#[derive(Module, Debug)]
struct Decoder {
    embed_tokens: Embedding,
    layers: Vec<Block>,
    norm: RmsNorm,
}

/// The module tree of a Llama-style model.
#[derive(Module, Debug)]
pub struct Llama {
    model: Decoder,
    lm_head: Option<Linear>,
}

impl Llama {
    /// Builds the modules from the parameters that `weights` gives by name.
    pub fn new(config: &ModelConfig, weights: &mut dyn WeightSource) -> Result<Self> {
        let (c, f, h) = (config.hidden_size, config.intermediate_size, config.head_dim);
        let (q, kv) = (config.num_attention_heads * h, config.num_key_value_heads * h);
        let mut layers = Vec::with_capacity(config.num_hidden_layers);
        for layer in 0..config.num_hidden_layers {
            let at = |part: &str| format!("model.layers.{layer}.{part}");
            let mut linear = |part: &str, out: usize, input: usize, bias: bool| weights.linear(&at(part), out, input, bias);
            let self_attn = Attention {
                q_proj: linear("self_attn.q_proj", q, c, config.attention_bias)?,
                k_proj: linear("self_attn.k_proj", kv, c, config.attention_bias)?,
                v_proj: linear("self_attn.v_proj", kv, c, config.attention_bias)?,
                o_proj: linear("self_attn.o_proj", c, q, false)?,
                q_norm: if config.qk_norm { Some(weights.rms_norm(&at("self_attn.q_norm"), h)?) } else { None },
                k_norm: if config.qk_norm { Some(weights.rms_norm(&at("self_attn.k_norm"), h)?) } else { None },
            };
            let mut linear = |part: &str, out: usize, input: usize| weights.linear(&at(part), out, input, false);
            let mlp = Mlp {
                gate_proj: linear("mlp.gate_proj", f, c)?,
                up_proj: linear("mlp.up_proj", f, c)?,
                down_proj: linear("mlp.down_proj", c, f)?,
            };
            layers.push(Block {
                input_layernorm: weights.rms_norm(&at("input_layernorm"), c)?,
                self_attn,
                post_attention_layernorm: weights.rms_norm(&at("post_attention_layernorm"), c)?,
                mlp,
            });
        }
        Ok(Self {
            model: Decoder {
                embed_tokens: weights.embedding("model.embed_tokens", config.vocab_size, c)?,
                layers,
                norm: weights.rms_norm("model.norm", c)?,
            },
            lm_head: if config.tie_word_embeddings { None } else { Some(weights.linear("lm_head", config.vocab_size, c, false)?) },
        })
    }

    /// The table that embeds tokens.
    pub fn lookups(&self, ids: Tensor<1, Int>) -> Vec<Lookup> {
        vec![Lookup { name: "model.embed_tokens.weight", table: self.model.embed_tokens.weight.val(), rows: ids }]
    }

    /// x [B·T, C] → [B·T, C].
    pub fn block(
        &self,
        config: &ModelConfig,
        layer: usize,
        x: Tensor<2>,
        span: Span<'_>,
        rope: &Rope,
        cache: Option<&mut KvCache>,
    ) -> Tensor<2> {
        let block = &self.model.layers[layer];
        let attention = &block.self_attn;
        let (n, h) = (span.batch_size * span.seq_len, config.head_dim);
        let normed = block.input_layernorm.forward(x.clone(), config.norm_eps);
        let per_head = |y: Tensor<2>, heads: usize, norm: &Option<RmsNorm>| match norm {
            Some(norm) => norm.forward(y.reshape([n * heads, h]), config.norm_eps).reshape([n, heads * h]),
            None => y,
        };
        let q = per_head(attention.q_proj.forward(normed.clone()), config.num_attention_heads, &attention.q_norm);
        let k = per_head(attention.k_proj.forward(normed.clone()), config.num_key_value_heads, &attention.k_norm);
        let v = attention.v_proj.forward(normed);
        let (q, k) = (rope.rotate(q, span), rope.rotate(k, span));
        let attended = attention.o_proj.forward(attend(config, q, k, v, span, cache, layer));
        let (x, normed) = block.post_attention_layernorm.add_forward(x, attended, config.norm_eps);
        let gated = kernels::swiglu(block.mlp.gate_proj.forward(normed.clone()), block.mlp.up_proj.forward(normed));
        kernels::residual_add(x, block.mlp.down_proj.forward(gated))
    }

    /// The normed input of the head [N, C] and its weight [V, C].
    pub fn before_head(&self, config: &ModelConfig, x: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        let weight = self.lm_head.as_ref().map_or_else(|| self.model.embed_tokens.weight.val(), |head| head.weight.val());
        (self.model.norm.forward(x, config.norm_eps), weight)
    }
}
