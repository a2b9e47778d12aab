//! The layers that both families are made of, for modules of one's own too: a packed bf16 weight may meet no other operation. Field names are
//! the last parts of the state-dict names.

#![allow(non_snake_case, reason = "the factors of a target are called as files call them")]

use burn::module::{Module, Param};
use burn::tensor::{Int, Tensor};

use super::Span;
pub use super::low_rank::{Factor, LowRank, Products};
pub use super::weight::{Matrix, Weight};
use crate::ops;

/// y = x·Wᵀ + b, and of a target of an adapter s·d(x)·Aᵀ·Bᵀ more. weight [out, in] (f32 or packed bf16), bias [out], A [r, in], B [out, r].
#[derive(Module, Debug)]
pub struct Linear {
    /// [out, in].
    pub weight: Matrix,
    /// [out].
    pub bias: Option<Weight<1>>,
    /// A of a target.
    pub lora_A: Option<Factor>,
    /// B of a target.
    pub lora_B: Option<Factor>,
    /// How a target adds its product.
    #[module(skip)]
    pub low_rank: Option<LowRank>,
}

impl Linear {
    /// A layer of these parameters that is no target.
    pub fn new(weight: Param<Tensor<2>>, bias: Option<Param<Tensor<1>>>) -> Self {
        Self { weight: weight.into(), bias: bias.map(Weight::from), lora_A: None, lora_B: None, low_rank: None }
    }

    /// Makes it a layer that is no target.
    pub(super) fn detach(&mut self) {
        (self.lora_A, self.lora_B, self.low_rank) = (None, None, None);
    }

    /// The matrix in an operation with `x`, if a product with it is all that the layer does. What an adapter leaves frozen goes the way of packed
    /// matrices, so that gradients have the same bits however the base is stored.
    pub(super) fn alone(&self, x: &Tensor<2>) -> Option<Tensor<2>> {
        let alone = self.bias.is_none() && self.low_rank.is_none();
        self.weight.dense().filter(|weight| alone && matches!(weight, Weight::Trained(_))).map(|weight| weight.beside(x))
    }

    /// x [N, in] → [N, out], without dropout.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let rows = x.dims()[0];
        self.forward_at(x, Span::whole(1, rows))
    }

    /// x [N, in] → [N, out]. In training, the moment of `span` says which values dropout takes away.
    pub fn forward_at(&self, x: Tensor<2>, span: Span<'_>) -> Tensor<2> {
        let y = match (&self.low_rank, &self.lora_A, &self.lora_B) {
            (Some(low_rank), Some(a), Some(b)) => low_rank.product(x, &self.weight, false, [a, b], span),
            _ => self.weight.linear(x),
        };
        add_bias(y, self.bias.as_ref())
    }
}

fn add_bias(y: Tensor<2>, bias: Option<&Weight<1>>) -> Tensor<2> {
    match bias {
        Some(bias) => {
            let bias = bias.beside(&y);
            ops::bias_add(y, bias)
        }
        None => y,
    }
}

/// y = x·W + b, weight [in, out] as GPT-2's files have it, and of a target s·d(x)·Aᵀ·Bᵀ more with A [r, in] and B [out, r] all the same.
#[derive(Module, Debug)]
pub struct Conv1d {
    /// [in, out].
    pub weight: Matrix,
    /// [out].
    pub bias: Weight<1>,
    /// A of a target.
    pub lora_A: Option<Factor>,
    /// B of a target.
    pub lora_B: Option<Factor>,
    /// How a target adds its product.
    #[module(skip)]
    pub low_rank: Option<LowRank>,
}

impl Conv1d {
    /// Makes it a layer that is no target.
    pub(super) fn detach(&mut self) {
        (self.lora_A, self.lora_B, self.low_rank) = (None, None, None);
    }

    /// x [N, in] → [N, out], without dropout.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let rows = x.dims()[0];
        self.forward_at(x, Span::whole(1, rows))
    }

    /// x [N, in] → [N, out]. In training, the moment of `span` says which values dropout takes away.
    pub fn forward_at(&self, x: Tensor<2>, span: Span<'_>) -> Tensor<2> {
        add_bias(self.unbiased_at(x, span), Some(&self.bias))
    }

    /// [`Self::forward_at`] without the bias.
    pub(super) fn unbiased_at(&self, x: Tensor<2>, span: Span<'_>) -> Tensor<2> {
        match (&self.low_rank, &self.lora_A, &self.lora_B) {
            (Some(low_rank), Some(a), Some(b)) => low_rank.product(x, &self.weight, true, [a, b], span),
            _ => self.weight.conv1d(x),
        }
    }
}

/// Rows of a table. weight [V, C] (f32 or packed bf16).
#[derive(Module, Debug)]
pub struct Embedding {
    /// [V, C].
    pub weight: Matrix,
}

impl Embedding {
    /// ids [N] → [N, C]; an id outside the table gives zeros.
    pub fn forward(&self, ids: Tensor<1, Int>) -> Tensor<2> {
        self.weight.rows(ids)
    }
}

/// x/rms(x) ⊙ w (arXiv:1910.07467). weight [C].
#[derive(Module, Debug)]
pub struct RmsNorm {
    /// [C].
    pub weight: Weight<1>,
}

impl RmsNorm {
    /// x [N, C] → [N, C].
    pub fn forward(&self, x: Tensor<2>, eps: f64) -> Tensor<2> {
        let weight = self.weight.beside(&x);
        ops::rms_norm(x, weight, eps)
    }

    /// x + y and its norm, all [N, C].
    pub fn add_forward(&self, x: Tensor<2>, y: Tensor<2>, eps: f64) -> (Tensor<2>, Tensor<2>) {
        let weight = self.weight.beside(&x);
        ops::add_rms_norm(x, y, weight, eps)
    }
}

/// (x − mean)/√(var + ε) ⊙ w + b (arXiv:1607.06450). weight, bias [C].
#[derive(Module, Debug)]
pub struct LayerNorm {
    /// [C].
    pub weight: Weight<1>,
    /// [C].
    pub bias: Weight<1>,
}

impl LayerNorm {
    /// x [N, C] → [N, C].
    pub fn forward(&self, x: Tensor<2>, eps: f64) -> Tensor<2> {
        let (weight, bias) = (self.weight.beside(&x), self.bias.beside(&x));
        ops::layer_norm(x, weight, bias, eps)
    }

    /// x + (y + bias), x and y [N, C] and the bias of another layer [C], and the norm of the sum.
    pub fn add_forward(&self, x: Tensor<2>, y: Tensor<2>, bias: Option<&Weight<1>>, eps: f64) -> (Tensor<2>, Tensor<2>) {
        let own = [self.weight.beside(&x), self.bias.beside(&x)];
        let bias = bias.map(|bias| bias.beside(&x));
        ops::add_layer_norm(x, y, bias, own, eps)
    }
}
