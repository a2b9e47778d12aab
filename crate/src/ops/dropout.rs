//! Dropout with a mask that is a function of the run's seed, a name, the step and the micro-batch: computed again, it is the same.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;

use crate::gpu::launch::Launch;
use crate::gpu::{Kernels, Words};
use crate::ops::operation::operation;
use crate::ops::tape::{Grads, Sum, Vjp};
use crate::random::philox;

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[&KERNEL.all()];

crate::kernel! {
    /// Computes `y ← keep ? x·scale : 0`.
    pub KERNEL = "dropout" [64], (x) -> (y),
    /// Number and scale of the elements, and the values that decide which are kept.
    struct Params {
        /// Number of elements.
        n: usize,
        /// Threshold of the random word of an element: it is kept if the word is at least this.
        threshold: u32,
        /// Factor of the elements that are kept.
        scale: f32,
        /// Micro-batch of the step, counted from 0.
        micro_batch: u32,
        /// Philox key, low word.
        key_low: u32,
        /// Philox key, high word.
        key_high: u32,
        /// Step, counted from 1, low word.
        step_low: u32,
        /// Step, high word.
        step_high: u32,
    } varying,
    twin |[x], [y], p| {
        for e in 0..p.n {
            let [word, ..] = philox([e as u32, p.micro_batch, p.step_low, p.step_high], [p.key_low, p.key_high]);
            y.floats_mut()[e] = if word >= p.threshold { x.floats()[e] * p.scale } else { 0.0 };
        }
    }
}

/// The point of a run at which masks are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DropoutStep {
    /// The step, counted from 1.
    pub step: u64,
    /// The micro-batch of the step, counted from 0.
    pub micro_batch: u32,
}

/// The choice of the values that a dropout sets to 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mask {
    /// Share of the values that become 0, in 0 ≤ p < 1; the others are divided by 1 − p.
    pub probability: f64,
    /// Philox key of the place in the model.
    pub key: [u32; 2],
    /// The point of the run at which the mask is drawn.
    pub dropout_step: DropoutStep,
}

/// Returns `x` with some values set to 0 and the others scaled, in any shape.
pub(crate) fn masked<B: Launch>(x: FloatTensor<B>, mask: Mask) -> FloatTensor<B> {
    let n = x.shape().num_elements();
    let Mask {
        probability,
        key: [key_low, key_high],
        dropout_step: DropoutStep { step, micro_batch },
    } = mask;
    let params = Params {
        n,
        threshold: (probability * 2f64.powi(32)) as u32,
        scale: (1.0 / (1.0 - probability)) as f32,
        micro_batch,
        key_low,
        key_high,
        step_low: step as u32,
        step_high: (step >> 32) as u32,
    };
    let shape = x.shape();
    B::made(&KERNEL, [x], shape, &params, n)
}

/// The backward pass of a dropout: the same dropout of the gradient.
#[derive(Debug, Clone)]
pub struct Dropout {
    /// The mask of the forward pass.
    pub mask: Mask,
}

impl<B: Launch> Vjp<B, 1> for Dropout {
    fn backward(self, dy: FloatTensor<B>, _needs: [bool; 1], _: Sum<'_, B>) -> Grads<B, 1> {
        [Some(masked::<B>(dy, self.mask))]
    }
}

operation! {
    /// Returns `x [n, C]` with some values set to 0 and the others divided by 1 − p, as `mask` says.
    pub fn dropout(x: Tensor<2>; mask: Mask) -> Tensor<2> {
        let ([x], nodes) = B::parts([x]);
        B::record(nodes, masked::<B::Inner>(x, mask), Dropout { mask })
    }
}
