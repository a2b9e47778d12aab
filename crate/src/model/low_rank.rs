//! What an adapter adds to a matrix (arXiv:2106.09685): y += s·d(x)·Aᵀ·Bᵀ.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use crate::ops::{self, Mask, Moment};

/// One of a target's two factors. Its name is PEFT's: `<module>.lora_A.weight`.
#[derive(Module, Debug)]
pub struct Factor {
    /// [r, in] of A, [out, r] of B.
    pub weight: Param<Tensor<2>>,
}

/// How a target adds its product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LowRank {
    /// s: alpha / r, or alpha / √r with rsLoRA (arXiv:2312.03732).
    pub scale: f32,
    /// Share of the inputs that a training step takes away.
    pub dropout: f64,
    /// Philox key of the dropout.
    pub key: [u32; 2],
}

impl LowRank {
    /// y + s·d(x)·Aᵀ·Bᵀ. y [N, out], x [N, in]. The inputs are taken away in training alone, at its `moment`.
    pub fn added(&self, y: Tensor<2>, x: Tensor<2>, [a, b]: [&Factor; 2], moment: Option<Moment>) -> Tensor<2> {
        let x = match moment {
            Some(moment) if self.dropout > 0.0 => ops::dropout(x, Mask { probability: self.dropout, key: self.key, moment }),
            _ => x,
        };
        let z = ops::linear(x, a.weight.val());
        let z = if self.scale.to_bits() == 1f32.to_bits() { z } else { z * self.scale };
        ops::residual_add(y, ops::linear(z, b.weight.val()))
    }
}
