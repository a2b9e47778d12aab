//! The layers that both families are made of, for modules of one's own too: a packed bf16 weight may meet no other operation. Field names are
//! the last parts of the state-dict names.

use burn::module::{Module, Param};
use burn::tensor::{Int, Tensor};

use crate::ops;

/// y = x·Wᵀ + b. weight [out, in] (f32 or packed bf16), bias [out].
#[derive(Module, Debug)]
pub struct Linear {
    /// [out, in].
    pub weight: Param<Tensor<2>>,
    /// [out].
    pub bias: Option<Param<Tensor<1>>>,
}

impl Linear {
    /// x [N, in] → [N, out].
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let y = ops::linear(x, self.weight.val());
        match &self.bias {
            Some(bias) => ops::bias_add(y, bias.val()),
            None => y,
        }
    }
}

/// y = x·W + b, weight [in, out] as GPT-2's files have it.
#[derive(Module, Debug)]
pub struct Conv1d {
    /// [in, out].
    pub weight: Param<Tensor<2>>,
    /// [out].
    pub bias: Param<Tensor<1>>,
}

impl Conv1d {
    /// x [N, in] → [N, out].
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        ops::bias_add(ops::conv1d(x, self.weight.val()), self.bias.val())
    }
}

/// Rows of a table. weight [V, C] (f32 or packed bf16).
#[derive(Module, Debug)]
pub struct Embedding {
    /// [V, C].
    pub weight: Param<Tensor<2>>,
}

impl Embedding {
    /// ids [N] → [N, C]; an id outside the table gives zeros.
    pub fn forward(&self, ids: Tensor<1, Int>) -> Tensor<2> {
        ops::embedding(self.weight.val(), ids)
    }
}

/// x/rms(x) ⊙ w (arXiv:1910.07467). weight [C].
#[derive(Module, Debug)]
pub struct RmsNorm {
    /// [C].
    pub weight: Param<Tensor<1>>,
}

impl RmsNorm {
    /// x [N, C] → [N, C].
    pub fn forward(&self, x: Tensor<2>, eps: f64) -> Tensor<2> {
        ops::rms_norm(x, self.weight.val(), eps)
    }

    /// x + y and its norm, all [N, C].
    pub fn add_forward(&self, x: Tensor<2>, y: Tensor<2>, eps: f64) -> (Tensor<2>, Tensor<2>) {
        ops::add_rms_norm(x, y, self.weight.val(), eps)
    }
}

/// (x − mean)/√(var + ε) ⊙ w + b (arXiv:1607.06450). weight, bias [C].
#[derive(Module, Debug)]
pub struct LayerNorm {
    /// [C].
    pub weight: Param<Tensor<1>>,
    /// [C].
    pub bias: Param<Tensor<1>>,
}

impl LayerNorm {
    /// x [N, C] → [N, C].
    pub fn forward(&self, x: Tensor<2>, eps: f64) -> Tensor<2> {
        ops::layer_norm(x, self.weight.val(), self.bias.val(), eps)
    }
}
