//! The Llama family: RMSNorm, RoPE, grouped-query attention, SwiGLU; with the biases of Qwen2 and the q/k norm of Qwen3 if the
//! configuration says so.

use burn::module::Module;
use burn::tensor::{Int, Tensor};

use super::Span;
use super::attention::{KvCache, attend, attention_shape};
use super::family::{Family, Kept, Lookup, Part, Place, Role, Stream, kept_outside_mlp};
use super::layers::{Embedding, Linear, Matrix, RmsNorm};
use super::load::{ParameterBuilder, WeightSource};
use super::rope::Rope;
use crate::config::ModelConfig;
use crate::error::Result;
use crate::ops;

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

/// Module tree of a Llama-style model.
#[derive(Module, Debug)]
pub struct Llama {
    model: Decoder,
    lm_head: Option<Linear>,
}

impl Attention {
    /// Computes queries, keys and values of the rows of `x [B·T, C]` and the attention between them → `[B·T, heads·H]`.
    fn attended(
        &self,
        config: &ModelConfig,
        x: Tensor<2>,
        rope: &Rope,
        span: Span<'_>,
        cache: Option<&mut KvCache>,
        layer: usize,
    ) -> Tensor<2> {
        let (n, h) = (span.batch_size * span.seq_len, config.head_dim);
        let (heads, kv_heads) = (config.num_attention_heads, config.num_key_value_heads);
        let alone = [&self.q_proj, &self.k_proj, &self.v_proj].map(|layer| layer.alone(&x));
        if let ([Some(q), Some(k), Some(v)], None, None, None) = (alone, &cache, &self.q_norm, &self.k_norm) {
            return ops::self_attention(x, [q, k, v], rope.tables(), span.document_starts.cloned(), attention_shape(config, span));
        }
        let per_head = |y: Tensor<2>, heads: usize, norm: &Option<RmsNorm>| match norm {
            Some(norm) => norm.forward(y.reshape([n * heads, h]), config.norm_eps).reshape([n, heads * h]),
            None => y,
        };
        let q = per_head(self.q_proj.forward_at(x.clone(), span), heads, &self.q_norm);
        let k = per_head(self.k_proj.forward_at(x.clone(), span), kv_heads, &self.k_norm);
        let v = self.v_proj.forward_at(x, span);
        let (q, k) = rope.rotate(q, k, span);
        attend(config, q, k, v, span, cache, layer)
    }
}

impl Mlp {
    /// Computes `silu(gate) · up` of the rows of `x [B·T, C]` → `[B·T, F]`.
    fn gated(&self, x: Tensor<2>, span: Span<'_>) -> Tensor<2> {
        match [&self.gate_proj, &self.up_proj].map(|layer| layer.alone(&x)) {
            [Some(gate), Some(up)] => ops::gated(x, [gate, up]),
            _ => {
                let gate = self.gate_proj.forward_at(x.clone(), span);
                ops::swiglu(gate, self.up_proj.forward_at(x, span))
            }
        }
    }
}

impl Llama {
    /// Builds the modules from the parameters that `weights` provides by name.
    ///
    /// # Errors
    /// The errors of `weights`, for example for a parameter that it lacks.
    pub fn new(config: &ModelConfig, weights: &mut dyn WeightSource) -> Result<Self> {
        let (c, f, h) = (config.hidden_size, config.intermediate_size, config.head_dim);
        let (q, kv) = (config.num_attention_heads * h, config.num_key_value_heads * h);
        let mut layers = Vec::with_capacity(config.num_hidden_layers);
        for layer in 0..config.num_hidden_layers {
            let mut builder = ParameterBuilder { weights, part: Part::Block(layer), prefix: format!("model.layers.{layer}.") };
            let biased = config.attention_bias;
            let self_attn = Attention {
                q_proj: builder.linear("self_attn.q_proj", [q, c], biased, Role::Inner)?,
                k_proj: builder.linear("self_attn.k_proj", [kv, c], biased, Role::Inner)?,
                v_proj: builder.linear("self_attn.v_proj", [kv, c], biased, Role::Inner)?,
                o_proj: builder.linear("self_attn.o_proj", [c, q], false, Role::Residual)?,
                q_norm: if config.qk_norm { Some(builder.rms_norm("self_attn.q_norm", h)?) } else { None },
                k_norm: if config.qk_norm { Some(builder.rms_norm("self_attn.k_norm", h)?) } else { None },
            };
            let mlp = Mlp {
                gate_proj: builder.linear("mlp.gate_proj", [f, c], false, Role::Inner)?,
                up_proj: builder.linear("mlp.up_proj", [f, c], false, Role::Inner)?,
                down_proj: builder.linear("mlp.down_proj", [c, f], false, Role::Residual)?,
            };
            layers.push(Block {
                input_layernorm: builder.rms_norm("input_layernorm", c)?,
                self_attn,
                post_attention_layernorm: builder.rms_norm("post_attention_layernorm", c)?,
                mlp,
            });
        }
        let tied = config.tie_word_embeddings;
        let mut tables = ParameterBuilder { weights, part: Part::Table { tied }, prefix: "model.".into() };
        let embed_tokens = tables.embedding("embed_tokens", [config.vocab_size, c])?;
        let norm = ParameterBuilder { weights, part: Part::Head, prefix: "model.".into() }.rms_norm("norm", c)?;
        let mut head = ParameterBuilder { weights, part: Part::Head, prefix: String::new() };
        let lm_head = if tied { None } else { Some(head.linear("lm_head", [config.vocab_size, c], false, Role::Inner)?) };
        Ok(Self { model: Decoder { embed_tokens, layers, norm }, lm_head })
    }

    /// Removes the factors of an adapter.
    pub fn detach(&mut self) {
        for Block { self_attn, mlp, .. } in &mut self.model.layers {
            let Attention { q_proj, k_proj, v_proj, o_proj, .. } = self_attn;
            let Mlp { gate_proj, up_proj, down_proj } = mlp;
            [q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj].into_iter().for_each(Linear::detach);
        }
    }
}

impl Family for Llama {
    fn kept(&self, config: &ModelConfig) -> Kept {
        let heads = config.num_attention_heads + config.num_key_value_heads;
        let norms_of_heads = if config.qk_norm { heads * (config.head_dim + 1) } else { 0 };
        let (c, f) = (config.hidden_size, config.intermediate_size);
        Kept {
            always: kept_outside_mlp(config) + 2 * f + 2 + norms_of_heads,
            inputs: [(&["q_proj", "k_proj", "v_proj"], c), (&["gate_proj", "up_proj"], c), (&["down_proj"], f)],
        }
    }

    fn rotates(&self) -> bool {
        true
    }

    fn lookups(&self, ids: Tensor<1, Int>, _span: Span<'_>) -> Vec<Lookup<'_>> {
        vec![Lookup { name: "model.embed_tokens.weight", table: &self.model.embed_tokens.weight, rows: ids }]
    }

    fn block(&self, place: Place<'_>, stream: Stream, span: Span<'_>, cache: Option<&mut KvCache>) -> Stream {
        let Place { config, layer, rope } = place;
        let rope = rope.expect("a model of a family that rotates is loaded with its tables");
        let block = &self.model.layers[layer];
        let attention = &block.self_attn;
        let (x, normed) = stream.normed(&block.input_layernorm, config.norm_eps);
        let attended = attention.attended(config, normed, rope, span, cache, layer);
        let attended = attention.o_proj.forward_at(attended, span);
        let (x, normed) = block.post_attention_layernorm.add_forward(x, attended, config.norm_eps);
        let gated = block.mlp.gated(normed, span);
        Stream { x, added: Some(block.mlp.down_proj.forward_at(gated, span)) }
    }

    fn before_head(&self, config: &ModelConfig, x: Tensor<2>) -> (Tensor<2>, &Matrix) {
        let weight = self.lm_head.as_ref().map_or(&self.model.embed_tokens.weight, |head| &head.weight);
        (self.model.norm.forward(x, config.norm_eps), weight)
    }
}
