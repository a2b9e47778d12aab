//! The products as operations, with a matrix that may have a gradient or with the words of a constant one.

use super::{Conv1d, Frozen, Linear, backward_input, forward, product};
use crate::gpu::StoredMatrix;
use crate::ops::operation::operation;
use crate::ops::weights::Weights;

operation! {
    /// Computes `x [n, k] · w [m, k]ᵀ → [n, m]`. The weights are f32 or packed bf16; their gradient is f32.
    pub fn linear(x: Tensor<2>, w: Tensor<2>) -> Tensor<2> {
        let ([x, w], nodes) = B::parts([x, w]);
        let w = Weights::of(w);
        let y = forward::<B::Inner>(x.clone(), w.clone());
        B::record(nodes, y, Linear { x, w })
    }
}

operation! {
    /// Computes `x [n, k] · w [k, m] → [n, m]`, the layout of GPT-2's Conv1D. The weights are f32 or packed bf16; their gradient is f32.
    pub fn conv1d(x: Tensor<2>, w: Tensor<2>) -> Tensor<2> {
        let ([x, w], nodes) = B::parts([x, w]);
        let w = Weights::of(w);
        let y = backward_input::<B::Inner>(x.clone(), w.clone());
        B::record(nodes, y, Conv1d { x, w })
    }
}

operation! {
    /// Computes [`linear`], or [`conv1d`], by the words of a packed matrix, which are a constant.
    pub(crate) fn product_of_words(x: Tensor<2>, words: Tensor<1>; form: StoredMatrix, conv1d: bool) -> Tensor<2> {
        let ([x], nodes) = B::parts([x]);
        let w = Weights { words: B::constant(words), form };
        let y = product::<B::Inner>(x, w.clone(), conv1d);
        B::record(nodes, y, Frozen { w, conv1d })
    }
}
