//! Soft cap of values: `y = c tanh(x / c)`.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;

use crate::gpu::launch::Launch;
use crate::gpu::{Kernels, Words, groups_of_64};
use crate::ops::operation::operation;
use crate::ops::tape::{Grads, Sum, Vjp};

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[&FORWARD.all(), &BACKWARD.all()];

crate::kernel! {
    /// Computes `x ← c tanh(x / c)`.
    pub FORWARD = "cap_forward" through "chunks/score_cap" [64], () -> (mut x),
    /// The elements, and their bound.
    struct Params {
        /// Number of elements.
        n: usize,
        /// c, the bound.
        cap: f32,
    },
    twin |[], [x], p| {
        let cap = f64::from(p.cap);
        for i in 0..p.n {
            x.set(i, cap * (x.wide(i) / cap).tanh());
        }
    }
}
crate::kernel! {
    /// Computes the gradient `dy ← dy (1 − (y / c)²)`.
    pub BACKWARD = "cap_backward" [64], (y) -> (mut dy), Params, twin |[y], [dy], p| {
        for i in 0..p.n {
            let share = y.wide(i) / f64::from(p.cap);
            dy.set(i, dy.wide(i) * (1.0 - share * share));
        }
    }
}

/// Computes `c tanh(x / c)` for x of any shape, in place of x if it is uniquely owned.
pub(crate) fn forward<B: Launch>(x: FloatTensor<B>, cap: f64) -> FloatTensor<B> {
    let n = x.shape().num_elements();
    let params = Params { n, cap: cap as f32 };
    let [y] = B::launch(&FORWARD, [], [x], &params, groups_of_64(n));
    y
}

/// The backward pass of a cap.
#[derive(Debug, Clone)]
struct Capped<T> {
    y: T,
    cap: f64,
}

impl<B: Launch> Vjp<B, 1> for Capped<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, _needs: [bool; 1], _: Sum<'_, B>) -> Grads<B, 1> {
        let n = dy.shape().num_elements();
        let params = Params {
            n,
            cap: self.cap as f32,
        };
        let [dx] = B::launch(&BACKWARD, [self.y], [dy], &params, groups_of_64(n));
        [Some(dx)]
    }
}

operation! {
    /// Computes `c tanh(x / c)`, in place of x if it is uniquely owned.
    pub fn capped(x: Tensor<2>; cap: f64) -> Tensor<2> {
        let ([x], nodes) = B::parts([x]);
        let y = forward::<B::Inner>(x, cap);
        B::record(nodes, y.clone(), Capped { y, cap })
    }
}
