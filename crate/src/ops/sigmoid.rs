//! SiLU, `x σ(x)` (arXiv:1606.08415), and values gated by a sigmoid, `x σ(gate)`, with `σ(g) = 1 / (1 + exp(−g))`.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;

use crate::gpu::launch::Launch;
use crate::gpu::{Kernels, Words, groups_of_64};
use crate::ops::operation::operation;
use crate::ops::tape::{Grads, Sum, Vjp};

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[
    &GATE_FORWARD.all(),
    &GATE_BACKWARD.all(),
    &SILU_FORWARD.all(),
    &SILU_BACKWARD.all(),
];

crate::kernel! {
    /// Computes `y = x σ(gate)`.
    pub GATE_FORWARD = "sigmoid_gate_forward" [64], (x, gate) -> (y),
    /// The elements of an operation.
    struct Params {
        /// Number of elements.
        n: usize,
    },
    twin |[x, gate], [y], p| {
        for i in 0..p.n {
            y.set(i, x.wide(i) * sigmoid(gate.wide(i)));
        }
    }
}
crate::kernel! {
    /// Computes the gradients `x ← dx`, `gate ← dgate`.
    pub GATE_BACKWARD = "sigmoid_gate_backward" [64], (dy) -> (mut x, mut gate), Params, twin |[dy], [x, gate], p| {
        for i in 0..p.n {
            let (d, v, s) = (dy.wide(i), x.wide(i), sigmoid(gate.wide(i)));
            x.set(i, d * s);
            gate.set(i, d * v * s * (1.0 - s));
        }
    }
}
crate::kernel! {
    /// Computes `y = x σ(x)`.
    pub SILU_FORWARD = "silu_forward" [64], (x) -> (y), Params, twin |[x], [y], p| {
        for i in 0..p.n {
            y.set(i, x.wide(i) * sigmoid(x.wide(i)));
        }
    }
}
crate::kernel! {
    /// Computes the gradient `x ← dx` of [`SILU_FORWARD`].
    pub SILU_BACKWARD = "silu_backward" [64], (dy) -> (mut x), Params, twin |[dy], [x], p| {
        for i in 0..p.n {
            let (d, v, s) = (dy.wide(i), x.wide(i), sigmoid(x.wide(i)));
            x.set(i, d * s * (1.0 + v * (1.0 - s)));
        }
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The backward pass of a gate.
#[derive(Debug, Clone)]
struct SigmoidGate<T> {
    x: T,
    gate: T,
}

impl<B: Launch> Vjp<B, 2> for SigmoidGate<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, _: [bool; 2], _: Sum<'_, B>) -> Grads<B, 2> {
        let n = dy.shape().num_elements();
        let (of, groups) = ([self.x, self.gate], groups_of_64(n));
        B::launch(&GATE_BACKWARD, [dy], of, &Params { n }, groups).map(Some)
    }
}

/// The backward pass of SiLU.
#[derive(Debug, Clone)]
struct Silu<T> {
    x: T,
}

impl<B: Launch> Vjp<B, 1> for Silu<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, _: [bool; 1], _: Sum<'_, B>) -> Grads<B, 1> {
        let n = dy.shape().num_elements();
        let groups = groups_of_64(n);
        B::launch(&SILU_BACKWARD, [dy], [self.x], &Params { n }, groups).map(Some)
    }
}

operation! {
    /// Computes `x · σ(gate)`, both `[n, C]` and different tensors. Their gradients are computed in place of them if they are uniquely owned.
    pub fn sigmoid_gate(x: Tensor<2>, gate: Tensor<2>) -> Tensor<2> {
        let ([x, gate], nodes) = B::parts([x, gate]);
        let (shape, n) = (x.shape(), x.shape().num_elements());
        let y = B::Inner::made(&GATE_FORWARD, [x.clone(), gate.clone()], shape, &Params { n }, n);
        B::record(nodes, y, SigmoidGate { x, gate })
    }
}

operation! {
    /// Computes `x · σ(x)` of `x [n, C]`. The gradient is computed in place of x if it is uniquely owned.
    pub fn silu(x: Tensor<2>) -> Tensor<2> {
        let ([x], nodes) = B::parts([x]);
        let (shape, n) = (x.shape(), x.shape().num_elements());
        let y = B::Inner::made(&SILU_FORWARD, [x.clone()], shape, &Params { n }, n);
        B::record(nodes, y, Silu { x })
    }
}
