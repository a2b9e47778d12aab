//! A transformer block, and the residual stream between blocks.

use burn::module::Module;
use burn::tensor::Tensor;

use super::Span;
use super::attention::Attention;
use super::builder::ParameterBuilder;
use super::cache::LayerCache;
use super::mlp::Mlp;
use super::norm::Norm;
use super::rope::Ropes;
use crate::config::{Layer, Slot};
use crate::error::Result;
use crate::ops;

/// Residual stream between two blocks, `[B·T, C]`. The output of the last block is added by the norm of the next block, where that norm can
/// do so.
#[derive(Debug, Clone)]
pub struct Stream {
    x: Tensor<2>,
    /// Output that is still to be added.
    added: Option<Tensor<2>>,
    /// Bias of that output.
    bias: Option<Tensor<1>>,
}

impl Stream {
    /// Creates a stream with nothing left to add.
    pub fn of(x: Tensor<2>) -> Self {
        Self { x, added: None, bias: None }
    }

    /// Returns the sum.
    pub fn sum(self) -> Tensor<2> {
        let Some(added) = self.added else { return self.x };
        let added = match self.bias {
            Some(bias) => ops::bias_add(added, bias),
            None => added,
        };
        ops::residual_add(self.x, added)
    }

    /// Returns the sum and its norm.
    fn normed(self, norm: &Norm) -> (Tensor<2>, Tensor<2>) {
        match self.added {
            Some(added) => norm.add_forward(self.x, added, self.bias),
            None => (self.x.clone(), norm.forward(self.x)),
        }
    }
}

/// A transformer block.
#[derive(Module, Debug)]
pub struct Block {
    attention_norm: Norm,
    attention: Attention,
    mlp_norm: Norm,
    mlp: Mlp,
}

impl Block {
    /// Requests the parameters of `layer`, whose rows have `width` values.
    pub fn new(layer: &Layer, width: usize, builder: &mut ParameterBuilder<'_>) -> Result<Self> {
        Ok(Self {
            attention_norm: builder.norm(Slot::AttentionNorm, layer.norm, width)?,
            attention: Attention::new(layer, width, builder)?,
            mlp_norm: builder.norm(Slot::MlpNorm, layer.norm, width)?,
            mlp: Mlp::new(layer.mlp, width, builder)?,
        })
    }

    /// Removes the factors of an adapter.
    pub fn detach(&mut self) {
        self.attention.detach();
        self.mlp.detach();
    }

    /// Runs the block. With `cache`, keys and values of earlier tokens are read and the new ones are added.
    pub fn run(&self, stream: Stream, ropes: &Ropes, span: Span<'_>, cache: Option<LayerCache<'_>>) -> Stream {
        // x ← x + Wo attention(n(x)) + bo
        let (x, normed) = stream.normed(&self.attention_norm);
        let (attended, output) = (self.attention.attended(normed, ropes, span, cache), self.attention.output());
        let added = output.unbiased_at(attended, span);
        let bias = output.bias.as_ref().map(|bias| bias.beside(&added));
        let stream = Stream { x, added: Some(added), bias };
        // x ← x + mlp(n(x))
        let (x, normed) = stream.normed(&self.mlp_norm);
        Stream { x, added: Some(self.mlp.forward(normed, span)), bias: None }
    }
}
