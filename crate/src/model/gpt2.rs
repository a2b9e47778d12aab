//! GPT-2: learned positions, LayerNorm, fused q/k/v, GELU in its tanh form, tied head.

use burn::module::Module;
use burn::tensor::{Int, Tensor};

use super::Span;
use super::attention::{KvCache, attend, attention_shape};
use super::family::{Family, Kept, Lookup, Part, Place, Role, Stream, kept_outside_mlp};
use super::layers::{Conv1d, Embedding, LayerNorm, Linear, Matrix};
use super::load::{ParameterBuilder, WeightSource};
use crate::config::ModelConfig;
use crate::error::Result;
use crate::ops;

#[derive(Module, Debug)]
struct Attention {
    c_attn: Conv1d,
    c_proj: Conv1d,
}

#[derive(Module, Debug)]
struct Mlp {
    c_fc: Conv1d,
    c_proj: Conv1d,
}

#[derive(Module, Debug)]
struct Block {
    ln_1: LayerNorm,
    attn: Attention,
    ln_2: LayerNorm,
    mlp: Mlp,
}

#[derive(Module, Debug)]
struct Transformer {
    wte: Embedding,
    wpe: Embedding,
    h: Vec<Block>,
    ln_f: LayerNorm,
}

/// Module tree of GPT-2.
#[derive(Module, Debug)]
pub struct Gpt2 {
    transformer: Transformer,
    lm_head: Option<Linear>,
}

impl Gpt2 {
    /// Builds the modules from the parameters that `weights` provides by name.
    ///
    /// # Errors
    /// The errors of `weights`, for example for a parameter that it lacks.
    pub fn new(config: &ModelConfig, weights: &mut dyn WeightSource) -> Result<Self> {
        let (c, f) = (config.hidden_size, config.intermediate_size);
        let mut h = Vec::with_capacity(config.num_hidden_layers);
        for layer in 0..config.num_hidden_layers {
            let mut builder = ParameterBuilder { weights, part: Part::Block(layer), prefix: format!("transformer.h.{layer}.") };
            h.push(Block {
                ln_1: builder.layer_norm("ln_1", c)?,
                attn: Attention {
                    c_attn: builder.conv1d("attn.c_attn", [c, 3 * c], Role::Inner)?,
                    c_proj: builder.conv1d("attn.c_proj", [c, c], Role::Residual)?,
                },
                ln_2: builder.layer_norm("ln_2", c)?,
                mlp: Mlp {
                    c_fc: builder.conv1d("mlp.c_fc", [c, f], Role::Inner)?,
                    c_proj: builder.conv1d("mlp.c_proj", [f, c], Role::Residual)?,
                },
            });
        }
        let tied = config.tie_word_embeddings;
        let prefix = || "transformer.".to_string();
        let wte = ParameterBuilder { weights, part: Part::Table { tied }, prefix: prefix() }.embedding("wte", [config.vocab_size, c])?;
        let wpe = ParameterBuilder { weights, part: Part::Table { tied: false }, prefix: prefix() }
            .embedding("wpe", [config.max_position_embeddings, c])?;
        let ln_f = ParameterBuilder { weights, part: Part::Head, prefix: prefix() }.layer_norm("ln_f", c)?;
        let mut head = ParameterBuilder { weights, part: Part::Head, prefix: String::new() };
        let lm_head = if tied { None } else { Some(head.linear("lm_head", [config.vocab_size, c], false, Role::Inner)?) };
        Ok(Self { transformer: Transformer { wte, wpe, h, ln_f }, lm_head })
    }

    /// Removes the factors of an adapter.
    pub fn detach(&mut self) {
        for Block { attn, mlp, .. } in &mut self.transformer.h {
            [&mut attn.c_attn, &mut attn.c_proj, &mut mlp.c_fc, &mut mlp.c_proj].into_iter().for_each(Conv1d::detach);
        }
    }
}

impl Family for Gpt2 {
    fn kept(&self, config: &ModelConfig) -> Kept {
        let (c, f) = (config.hidden_size, config.intermediate_size);
        Kept { always: kept_outside_mlp(config) + f + 4, inputs: [(&["c_attn"], c), (&["c_fc"], c), (&["mlp.c_proj"], f)] }
    }

    fn rotates(&self) -> bool {
        false
    }

    /// Counts positions from the start of each token's document.
    fn lookups(&self, ids: Tensor<1, Int>, span: Span<'_>) -> Vec<Lookup<'_>> {
        let device = ids.device();
        let (first, last) = (span.offset as i64, (span.offset + span.seq_len) as i64);
        let positions = Tensor::<1, Int>::arange(first..last, &device).repeat_dim(0, span.batch_size);
        let positions = span.document_starts.cloned().map_or(positions.clone(), |starts| positions - starts);
        let tables = &self.transformer;
        vec![
            Lookup { name: "transformer.wte.weight", table: &tables.wte.weight, rows: ids },
            Lookup { name: "transformer.wpe.weight", table: &tables.wpe.weight, rows: positions },
        ]
    }

    fn block(&self, place: Place<'_>, stream: Stream, span: Span<'_>, cache: Option<&mut KvCache>) -> Stream {
        let Place { config, layer, .. } = place;
        let (block, eps) = (&self.transformer.h[layer], config.norm_eps);
        let (x, normed) = match stream.added {
            Some(added) => block.ln_1.add_forward(stream.x, added, None, eps),
            None => (stream.x.clone(), block.ln_1.forward(stream.x, eps)),
        };
        let (attn, mlp) = (&block.attn, &block.mlp);
        let attended = match cache {
            None => {
                let (qkv, bias) = (attn.c_attn.unbiased_at(normed, span), &attn.c_attn.bias);
                let bias = bias.beside(&qkv);
                ops::attention_of_packed_qkv(qkv, bias, span.document_starts.cloned(), attention_shape(config, span))
            }
            Some(cache) => {
                let (qkv, c) = (attn.c_attn.forward_at(normed, span), config.hidden_size);
                let part = |i: usize| qkv.clone().narrow(1, i * c, c);
                attend(config, part(0), part(1), part(2), span, Some(cache), layer)
            }
        };
        let (x, normed) = block.ln_2.add_forward(x, attn.c_proj.unbiased_at(attended, span), Some(&attn.c_proj.bias), eps);
        let hidden = mlp.c_fc.unbiased_at(normed, span);
        let bias = mlp.c_fc.bias.beside(&hidden);
        Stream { x, added: Some(mlp.c_proj.forward_at(ops::gelu_bias(hidden, bias), span)) }
    }

    fn before_head(&self, config: &ModelConfig, x: Tensor<2>) -> (Tensor<2>, &Matrix) {
        let weight = self.lm_head.as_ref().map_or(&self.transformer.wte.weight, |head| &head.weight);
        (self.transformer.ln_f.forward(x, config.norm_eps), weight)
    }
}
