//! Layers that every family is built from, also for modules of your own: a packed bf16 weight must not reach any other operation. Field
//! names are the last parts of the state-dict names.

#![allow(
    non_snake_case,
    reason = "the factors of a target are called as files call them"
)]

use burn::module::{Module, Param};
use burn::tensor::{Int, Tensor};

use super::Span;
pub use super::low_rank::{Factor, LowRank, Products};
pub use super::matrix::{Matrix, MatrixPart};
pub use super::weight::Weight;
use crate::ops::{self, NormConstants};

/// Linear layer y = x·Wᵀ + b; a target of an adapter adds s·d(x)·Aᵀ·Bᵀ. `weight [out, in]` (f32 or packed bf16), `bias [out]`, `A [r, in]`,
/// `B [out, r]`. With `conv1d` it is y = x·W + b with `weight [in, out]`, as in GPT-2's files.
#[derive(Module, Debug)]
pub struct Linear {
    /// Matrix `[out, in]`, or `[in, out]` with `conv1d`.
    pub weight: Matrix,
    /// Bias `[out]`.
    pub bias: Option<Weight<1>>,
    /// Factor A of a target, `[r, in]`.
    pub lora_A: Option<Factor>,
    /// Factor B of a target, `[out, r]`.
    pub lora_B: Option<Factor>,
    /// Scale and dropout with which a target adds its product.
    #[module(skip)]
    pub low_rank: Option<LowRank>,
    /// True if the matrix is `[in, out]`.
    #[module(skip)]
    pub conv1d: bool,
}

impl Linear {
    /// Creates a layer with these parameters that is not a target. `weight [out, in]`, `bias [out]`.
    pub fn new(weight: Param<Tensor<2>>, bias: Option<Param<Tensor<1>>>) -> Self {
        Self {
            weight: weight.into(),
            bias: bias.map(Weight::from),
            lora_A: None,
            lora_B: None,
            low_rank: None,
            conv1d: false,
        }
    }

    /// Removes the factors, so that the layer is not a target.
    pub(super) fn detach(&mut self) {
        (self.lora_A, self.lora_B, self.low_rank) = (None, None, None);
    }

    /// Returns the matrix for an operation with `x`, if multiplying by it is all that the layer does. A matrix that an adapter leaves
    /// frozen takes the path of packed matrices, so that gradients have the same bits however the base is stored.
    pub(super) fn alone(&self, x: &Tensor<2>) -> Option<Tensor<2>> {
        let alone = self.bias.is_none() && self.low_rank.is_none() && !self.conv1d;
        self.weight
            .dense()
            .filter(|weight| alone && matches!(weight, Weight::Trained(_)))
            .map(|weight| weight.beside(x))
    }

    /// Computes the output without dropout. `x [N, in]` → `[N, out]`.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let rows = x.dims()[0];
        self.forward_at(x, Span::whole(1, rows))
    }

    /// Computes the output. `x [N, in]` → `[N, out]`. In training, the dropout step of `span` decides which values dropout removes.
    pub fn forward_at(&self, x: Tensor<2>, span: Span<'_>) -> Tensor<2> {
        let y = self.unbiased_at(x, span);
        match &self.bias {
            Some(bias) => {
                let bias = bias.beside(&y);
                ops::bias_add(y, bias)
            }
            None => y,
        }
    }

    /// Computes [`Self::forward_at`] without the bias.
    pub(super) fn unbiased_at(&self, x: Tensor<2>, span: Span<'_>) -> Tensor<2> {
        match (&self.low_rank, &self.lora_A, &self.lora_B) {
            (Some(low_rank), Some(a), Some(b)) => {
                low_rank.product(x, &self.weight, self.conv1d, [a, b], span)
            }
            _ if self.conv1d => self.weight.conv1d(x),
            _ => self.weight.linear(x),
        }
    }
}

/// Table whose rows are looked up. `weight [V, C]` (f32 or packed bf16).
#[derive(Module, Debug)]
pub struct Embedding {
    /// Table `[V, C]`.
    pub weight: Matrix,
}

impl Embedding {
    /// Looks up rows. `ids [N]` → `[N, C]`; an id outside the table gives zeros.
    pub fn forward(&self, ids: Tensor<1, Int>) -> Tensor<2> {
        self.weight.rows(ids)
    }
}

/// RMS norm x/rms(x) ⊙ (w + offset) (arXiv:1910.07467). `weight [C]`.
#[derive(Module, Debug)]
pub struct RmsNorm {
    /// Scale `[C]`.
    pub weight: Weight<1>,
}

impl RmsNorm {
    /// Normalizes rows. `x [N, C]` → `[N, C]`.
    pub fn forward(&self, x: Tensor<2>, of: NormConstants) -> Tensor<2> {
        let weight = self.weight.beside(&x);
        ops::rms_norm(x, weight, of)
    }

    /// Returns x + y and its norm, all `[N, C]`.
    pub fn add_forward(
        &self,
        x: Tensor<2>,
        y: Tensor<2>,
        of: NormConstants,
    ) -> (Tensor<2>, Tensor<2>) {
        let weight = self.weight.beside(&x);
        ops::add_rms_norm(x, y, weight, of)
    }
}

/// LayerNorm (x − mean)/√(var + ε) ⊙ w + b (arXiv:1607.06450). `weight` and `bias` `[C]`.
#[derive(Module, Debug)]
pub struct LayerNorm {
    /// Scale `[C]`.
    pub weight: Weight<1>,
    /// Bias `[C]`.
    pub bias: Weight<1>,
}

impl LayerNorm {
    /// Normalizes rows. `x [N, C]` → `[N, C]`.
    pub fn forward(&self, x: Tensor<2>, eps: f64) -> Tensor<2> {
        let (weight, bias) = (self.weight.beside(&x), self.bias.beside(&x));
        ops::layer_norm(x, weight, bias, eps)
    }

    /// Returns x + (y + bias) and the norm of that sum. `x` and `y` `[N, C]`, `bias [C]` of another layer.
    pub fn add_forward(
        &self,
        x: Tensor<2>,
        y: Tensor<2>,
        bias: Option<Tensor<1>>,
        eps: f64,
    ) -> (Tensor<2>, Tensor<2>) {
        let own = [self.weight.beside(&x), self.bias.beside(&x)];
        ops::add_layer_norm(x, y, bias, own, eps)
    }
}

/// Taps of a convolution, `weight [C, 1, κ]` as PyTorch's grouped convolutions have them.
#[derive(Module, Debug)]
pub struct Taps {
    /// Taps `[C, 1, κ]`.
    pub weight: Weight<3>,
}

/// Parameters of the decays of a delta rule, for each head of values.
#[derive(Module, Debug)]
pub struct Decays {
    /// Logarithms of the rates `[M]`.
    pub A_log: Weight<1>,
    /// Biases `[M]`.
    pub dt_bias: Weight<1>,
}
