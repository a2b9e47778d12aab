//! GPT-2: learned positions, LayerNorm, fused q/k/v, GELU in its tanh form, tied head.

use burn::module::Module;
use burn::tensor::{Int, Tensor};

use super::attention::{KvCache, attend};
use super::layers::{Conv1d, Embedding, LayerNorm, Linear};
use super::load::WeightSource;
use super::{Lookup, Span};
use crate::config::ModelConfig;
use crate::error::Result;
use crate::kernels;

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

/// The module tree of GPT-2.
#[derive(Module, Debug)]
pub struct Gpt2 {
    transformer: Transformer,
    lm_head: Option<Linear>,
}

impl Gpt2 {
    /// Builds the modules from the parameters that `weights` gives by name.
    pub fn new(config: &ModelConfig, weights: &mut dyn WeightSource) -> Result<Self> {
        let (c, f) = (config.hidden_size, config.intermediate_size);
        let mut h = Vec::with_capacity(config.num_hidden_layers);
        for layer in 0..config.num_hidden_layers {
            let at = |part: &str| format!("transformer.h.{layer}.{part}");
            h.push(Block {
                ln_1: weights.layer_norm(&at("ln_1"), c)?,
                attn: Attention {
                    c_attn: weights.conv1d(&at("attn.c_attn"), c, 3 * c)?,
                    c_proj: weights.conv1d(&at("attn.c_proj"), c, c)?,
                },
                ln_2: weights.layer_norm(&at("ln_2"), c)?,
                mlp: Mlp { c_fc: weights.conv1d(&at("mlp.c_fc"), c, f)?, c_proj: weights.conv1d(&at("mlp.c_proj"), f, c)? },
            });
        }
        Ok(Self {
            transformer: Transformer {
                wte: weights.embedding("transformer.wte", config.vocab_size, c)?,
                wpe: weights.embedding("transformer.wpe", config.max_position_embeddings, c)?,
                h,
                ln_f: weights.layer_norm("transformer.ln_f", c)?,
            },
            lm_head: if config.tie_word_embeddings { None } else { Some(weights.linear("lm_head", config.vocab_size, c, false)?) },
        })
    }

    /// The tables that embed tokens and positions; positions are counted from the start of the document.
    pub fn lookups(&self, ids: Tensor<1, Int>, span: Span<'_>) -> Vec<Lookup> {
        let device = ids.device();
        let (first, last) = (span.offset as i64, (span.offset + span.seq_len) as i64);
        let positions = Tensor::<1, Int>::arange(first..last, &device).repeat_dim(0, span.batch_size);
        let positions = span.document_starts.cloned().map_or(positions.clone(), |starts| positions - starts);
        let tables = &self.transformer;
        vec![
            Lookup { name: "transformer.wte.weight", table: tables.wte.weight.val(), rows: ids },
            Lookup { name: "transformer.wpe.weight", table: tables.wpe.weight.val(), rows: positions },
        ]
    }

    /// x [B·T, C] → [B·T, C].
    pub fn block(&self, config: &ModelConfig, layer: usize, x: Tensor<2>, span: Span<'_>, cache: Option<&mut KvCache>) -> Tensor<2> {
        let block = &self.transformer.h[layer];
        let c = config.hidden_size;
        let qkv = block.attn.c_attn.forward(block.ln_1.forward(x.clone(), config.norm_eps));
        let part = |i: usize| qkv.clone().narrow(1, i * c, c);
        let attended = attend(config, part(0), part(1), part(2), span, cache, layer);
        let x = kernels::residual_add(x, block.attn.c_proj.forward(attended));
        let hidden = block.mlp.c_fc.forward(block.ln_2.forward(x.clone(), config.norm_eps));
        kernels::residual_add(x, block.mlp.c_proj.forward(kernels::gelu(hidden)))
    }

    /// The normed input of the head [N, C] and its weight [V, C].
    pub fn before_head(&self, config: &ModelConfig, x: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        let weight = self.lm_head.as_ref().map_or_else(|| self.transformer.wte.weight.val(), |head| head.weight.val());
        (self.transformer.ln_f.forward(x, config.norm_eps), weight)
    }
}
