//! A transformer block, and the residual stream between blocks.

use burn::module::Module;
use burn::tensor::Tensor;

use super::Span;
use super::builder::ParameterBuilder;
use super::cache::LayerCache;
use super::mixer::Mixer;
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
        Self {
            x,
            added: None,
            bias: None,
        }
    }

    /// Returns the sum.
    pub fn sum(self) -> Tensor<2> {
        match self.added {
            Some(added) => ops::residual_add(self.x, biased(added, self.bias)),
            None => self.x,
        }
    }

    /// Returns the sum and what a sublayer reads: its norm, or without one the sum itself.
    fn entered(self, norm: Option<&Norm>) -> (Tensor<2>, Tensor<2>) {
        match (self, norm) {
            (
                Self {
                    x,
                    added: Some(added),
                    bias,
                },
                Some(norm),
            ) => norm.add_forward(x, added, bias),
            (Self { x, added: None, .. }, Some(norm)) => (x.clone(), norm.forward(x)),
            (stream, None) => {
                let x = stream.sum();
                (x.clone(), x)
            }
        }
    }

    /// Normalizes and scales the output that is still to be added.
    fn left(self, norm: Option<&Norm>, scale: f64) -> Self {
        let Self {
            x,
            added: Some(added),
            bias,
        } = self
        else {
            return self;
        };
        let (added, bias) = match norm {
            Some(norm) => (norm.forward(biased(added, bias)), None),
            None => (added, bias),
        };
        let (added, bias) = if scale == 1.0 {
            (added, bias)
        } else {
            (ops::scaled(biased(added, bias), scale), None)
        };
        Self {
            x,
            added: Some(added),
            bias,
        }
    }
}

fn biased(y: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<2> {
    match bias {
        Some(bias) => ops::bias_add(y, bias),
        None => y,
    }
}

/// A transformer block.
#[derive(Module, Debug)]
pub struct Block {
    attention_norm: Option<Norm>,
    mixer: Mixer,
    attention_post_norm: Option<Norm>,
    mlp_norm: Option<Norm>,
    mlp: Mlp,
    mlp_post_norm: Option<Norm>,
    #[module(skip)]
    residual_scale: f64,
}

impl Block {
    /// Requests the parameters of `layer`, whose rows have `width` values.
    pub fn new(layer: &Layer, width: usize, builder: &mut ParameterBuilder<'_>) -> Result<Self> {
        let mut norm = |has, slot| {
            if has {
                builder.norm(slot, layer.norm, width).map(Some)
            } else {
                Ok(None)
            }
        };
        let (of_attention, of_mlp) = (layer.attention_norms, layer.mlp_norms);
        let attention_norm = norm(of_attention.before, Slot::AttentionNorm)?;
        let mlp_norm = norm(of_mlp.before, Slot::MlpNorm)?;
        let attention_post_norm = norm(of_attention.after, Slot::AttentionPostNorm)?;
        let mlp_post_norm = norm(of_mlp.after, Slot::MlpPostNorm)?;
        let (mixer, mlp) = (
            Mixer::new(layer, width, builder)?,
            Mlp::new(layer.mlp, width, builder)?,
        );
        let residual_scale = layer.residual_scale;
        Ok(Self {
            attention_norm,
            mixer,
            attention_post_norm,
            mlp_norm,
            mlp,
            mlp_post_norm,
            residual_scale,
        })
    }

    /// Removes the factors of an adapter.
    pub fn detach(&mut self) {
        self.mixer.detach();
        self.mlp.detach();
    }

    /// Runs the block. With `cache`, keys and values of earlier tokens are read and the new ones are added.
    pub fn run(
        &self,
        stream: Stream,
        ropes: &Ropes,
        span: Span<'_>,
        cache: Option<LayerCache<'_>>,
    ) -> Stream {
        // x ← x + ρ n(Wo mix(n(x)) + bo), with either or both of the norms, and a factor ρ
        let (x, input) = stream.entered(self.attention_norm.as_ref());
        let (mixed, output) = (
            self.mixer.mixed(input, ropes, span, cache),
            self.mixer.output(),
        );
        let added = output.unbiased_at(mixed, span);
        let bias = output.bias.as_ref().map(|bias| bias.beside(&added));
        let stream = Stream {
            x,
            added: Some(added),
            bias,
        }
        .left(self.attention_post_norm.as_ref(), self.residual_scale);
        // x ← x + ρ n(mlp(n(x)))
        let (x, input) = stream.entered(self.mlp_norm.as_ref());
        let stream = Stream {
            x,
            added: Some(self.mlp.forward(input, span)),
            bias: None,
        };
        stream.left(self.mlp_post_norm.as_ref(), self.residual_scale)
    }
}
