//! Computes the product that an adapter adds to that of a matrix (arXiv:2106.09685): y += s·d(x)·Aᵀ·Bᵀ.

use std::cell::RefCell;
use std::collections::VecDeque;

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::Span;
use super::matrix::Matrix;
use crate::ops::{self, Adapted, Mask};

/// One of a target's two factors, named as in PEFT: `<module>.lora_A.weight`.
#[derive(Module, Debug)]
pub struct Factor {
    /// `[r, in]` for A, `[out, r]` for B.
    pub weight: Param<Tensor<2>>,
}

/// Products d(x)·Aᵀ of a block, in the order of its targets. They are small, so a block that is run again for its gradients reuses the
/// products of its first pass.
#[derive(Debug, Default)]
pub struct Products {
    kept: RefCell<VecDeque<Tensor<2>>>,
    again: bool,
}

impl Products {
    /// Returns the same products for the second pass.
    pub fn again(self) -> Self {
        Self {
            again: true,
            ..self
        }
    }

    fn next(&self, made: impl FnOnce() -> Tensor<2>) -> Tensor<2> {
        let mut kept = self.kept.borrow_mut();
        if self.again
            && let Some(product) = kept.pop_front()
        {
            return product;
        }
        let product = made();
        if !self.again {
            kept.push_back(product.clone());
        }
        product
    }
}

/// Scale and dropout with which a target adds its product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LowRank {
    /// Factor s: alpha / r, or alpha / √r with rsLoRA (arXiv:2312.03732).
    pub scale: f32,
    /// Probability with which a training step drops an input value.
    pub dropout: f64,
    /// Philox key of the dropout.
    pub key: [u32; 2],
}

impl LowRank {
    /// Computes x·Wᵀ + s·d(x)·Aᵀ·Bᵀ, or with `conv1d` (GPT-2's layout) x·W + s·d(x)·Aᵀ·Bᵀ. `x [N, in]` → `[N, out]`; W is constant. Inputs
    /// are dropped in training only.
    pub fn product(
        &self,
        x: Tensor<2>,
        weight: &Matrix,
        conv1d: bool,
        [a, b]: [&Factor; 2],
        span: Span<'_>,
    ) -> Tensor<2> {
        let mask = span
            .dropout_step
            .filter(|_| self.dropout > 0.0)
            .map(|dropout_step| Mask {
                probability: self.dropout,
                key: self.key,
                dropout_step,
            });
        let (words, form, turned) = weight.stored();
        let recorded = x.is_autodiff();
        let made = || {
            let (x, a) = if recorded {
                (x.clone().inner(), a.weight.val().inner())
            } else {
                (x.clone(), a.weight.val())
            };
            ops::linear(
                if let Some(mask) = mask {
                    ops::dropout(x, mask)
                } else {
                    x
                },
                a,
            )
        };
        let z = if let Some(products) = span.products {
            products.next(made)
        } else {
            made()
        };
        let (words, z) = if recorded {
            (Tensor::from_inner(words), Tensor::from_inner(z))
        } else {
            (words, z)
        };
        let adapted = Adapted {
            form,
            conv1d: conv1d != turned,
            scale: self.scale,
            mask,
        };
        ops::low_rank(x, words, z, a.weight.val(), b.weight.val(), adapted)
    }
}
