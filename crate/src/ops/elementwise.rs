//! Elementwise operations: gated units, GELU, the addition of a bias, and the gradients of sums.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::Shape;

use crate::gpu::launch::{Launch, rows_columns};
use crate::gpu::{Kernels, Words, groups_of_64};
use crate::ops::column_sum::column_sum;
use crate::ops::operation::operation;
use crate::ops::residual;
use crate::ops::tape::{Grads, Sum, Vjp, gradients};

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[
    &SWIGLU_FORWARD.all(),
    &SWIGLU_FORWARD_WIDE.all(),
    &SWIGLU_BACKWARD.all(),
    &SWIGLU_BACKWARD_WIDE.all(),
    &GEGLU_FORWARD.all(),
    &GEGLU_BACKWARD.all(),
    &SWIGLU_HALVES_FORWARD.all(),
    &SWIGLU_HALVES_BACKWARD.all(),
    &GELU_FORWARD.all(),
    &GELU_BACKWARD.all(),
    &GELU_BIAS_FORWARD.all(),
    &BIAS_ADD.all(),
];

crate::kernel! {
    /// Computes `y = silu(gate) up`.
    pub SWIGLU_FORWARD = "swiglu_forward" [64], (gate, up) -> (y),
    /// The elements of an operation.
    struct Params {
        /// Number of elements.
        n: usize,
    },
    twin swiglu_twin;

    /// [`SWIGLU_FORWARD`] for a multiple of 4 elements.
    pub SWIGLU_FORWARD_WIDE = "swiglu_forward_wide" as SWIGLU_FORWARD;
}
crate::kernel! {
    /// Computes the gradients `gate ← dgate`, `up ← dup`.
    pub SWIGLU_BACKWARD = "swiglu_backward" [64], (dy) -> (mut gate, mut up), Params, twin swiglu_backward_twin;

    /// [`SWIGLU_BACKWARD`] for a multiple of 4 elements.
    pub SWIGLU_BACKWARD_WIDE = "swiglu_backward_wide" as SWIGLU_BACKWARD;
}
crate::kernel! {
    /// Computes `y = gelu(gate) up`.
    pub GEGLU_FORWARD = "geglu_forward" through "chunks/gelu" [64], (gate, up) -> (y), Params, twin |[gate, up], [y], p| {
        for i in 0..p.n {
            y.set(i, gelu_value(gate.wide(i)) * up.wide(i));
        }
    }
}
crate::kernel! {
    /// Computes the gradients `gate ← dgate`, `up ← dup` of [`GEGLU_FORWARD`].
    pub GEGLU_BACKWARD = "geglu_backward" through "chunks/gelu" [64], (dy) -> (mut gate, mut up), Params, twin |[dy], [gate, up], p| {
        for i in 0..p.n {
            let (g, u, d) = (gate.wide(i), up.wide(i), dy.wide(i));
            gate.set(i, d * u * gelu_slope(g));
            up.set(i, d * gelu_value(g));
        }
    }
}
crate::kernel! {
    /// Computes `y = silu(gate) up` of rows that have gate and up one after the other.
    pub SWIGLU_HALVES_FORWARD = "swiglu_halves_forward" [64], (x) -> (y),
    /// Shape of the result.
    struct HalvesParams {
        /// Number of rows.
        n: usize,
        /// F, the width of a half.
        width: usize,
    },
    twin |[x], [y], p| {
        for i in 0..p.n * p.width {
            let at = i + i / p.width * p.width;
            let (g, u) = (x.wide(at), x.wide(at + p.width));
            y.set(i, g * sigmoid(g) * u);
        }
    }
}
crate::kernel! {
    /// Computes the gradient of [`SWIGLU_HALVES_FORWARD`] in place of x.
    pub SWIGLU_HALVES_BACKWARD = "swiglu_halves_backward" [64], (dy) -> (mut x), HalvesParams, twin |[dy], [x], p| {
        for i in 0..p.n * p.width {
            let at = i + i / p.width * p.width;
            let (g, u, d) = (x.wide(at), x.wide(at + p.width), dy.wide(i));
            let s = sigmoid(g);
            x.set(at, d * u * s * (1.0 + g * (1.0 - s)));
            x.set(at + p.width, d * g * s);
        }
    }
}
crate::kernel! {
    /// Computes GELU, `y = x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2`.
    pub GELU_FORWARD = "gelu_forward" through "chunks/gelu" [64], (x) -> (y), Params, twin |[x], [y], p| {
        for i in 0..p.n {
            y.set(i, gelu_value(x.wide(i)));
        }
    }
}
crate::kernel! {
    /// Computes the gradient `x ← dy gelu'(x)`.
    pub GELU_BACKWARD = "gelu_backward" through "chunks/gelu" [64], (dy) -> (mut x), Params, twin |[dy], [x], p| {
        for i in 0..p.n {
            x.set(i, dy.wide(i) * gelu_slope(x.wide(i)));
        }
    }
}
crate::kernel! {
    /// Computes `x[r, c] ← x[r, c] + b[c]`.
    pub BIAS_ADD = "bias_add" [64], (b) -> (mut x),
    /// Shape of x, whose rows share a bias.
    struct BiasParams {
        /// Number of rows.
        n: usize,
        /// Number of columns.
        width: usize,
    },
    twin |[b], [x], p| {
        for i in 0..p.n * p.width {
            x.floats_mut()[i] += b.floats()[i % p.width];
        }
    }
}
crate::kernel! {
    /// Computes `x ← x + b`, and [`GELU_FORWARD`] of the sum.
    pub GELU_BIAS_FORWARD = "gelu_bias_forward" through "chunks/gelu" [64], (b) -> (mut x, y), BiasParams, twin |[b], [x, y], p| {
        for i in 0..p.n * p.width {
            x.floats_mut()[i] += b.floats()[i % p.width];
            y.set(i, gelu_value(x.wide(i)));
        }
    }
}
/// √(2/π).
const ROOT_2_PI: f64 = 0.797_884_560_802_865_4;

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn gelu_inner(x: f64) -> f64 {
    ROOT_2_PI * (x + 0.044715 * x * x * x)
}

fn gelu_value(x: f64) -> f64 {
    0.5 * x * (1.0 + gelu_inner(x).tanh())
}

fn gelu_slope(x: f64) -> f64 {
    let t = gelu_inner(x).tanh();
    let slope = 0.5 * x * (1.0 - t * t) * ROOT_2_PI * (1.0 + 3.0 * 0.044715 * x * x);
    0.5 * (1.0 + t) + if x.abs() > 20.0 { 0.0 } else { slope }
}

fn swiglu_twin([gate, up]: [&[u32]; 2], [y]: [&mut [u32]; 1], p: &Params) {
    for i in 0..p.n {
        let (g, u) = (gate.wide(i), up.wide(i));
        y.set(i, g * sigmoid(g) * u);
    }
}

fn swiglu_backward_twin([dy]: [&[u32]; 1], [gate, up]: [&mut [u32]; 2], p: &Params) {
    for i in 0..p.n {
        let (g, u, d) = (gate.wide(i), up.wide(i), dy.wide(i));
        let s = sigmoid(g);
        gate.set(i, d * u * s * (1.0 + g * (1.0 - s)));
        up.set(i, d * g * s);
    }
}

/// Function of the gate in a gated unit (arXiv:2002.05202).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateFunction {
    /// SiLU, as in SwiGLU.
    Silu,
    /// GELU in its tanh form, as in GeGLU.
    Gelu,
}

/// Computes `f(gate) up`, both of any one shape.
pub(crate) fn gated_values<B: Launch>(
    gate: FloatTensor<B>,
    up: FloatTensor<B>,
    function: GateFunction,
) -> FloatTensor<B> {
    let shape = gate.shape();
    let n = shape.num_elements();
    let (kernel, threads) = match function {
        GateFunction::Gelu => (&GEGLU_FORWARD, n),
        GateFunction::Silu if n.is_multiple_of(4) => (&SWIGLU_FORWARD_WIDE, n / 4),
        GateFunction::Silu => (&SWIGLU_FORWARD, n),
    };
    B::made(kernel, [gate, up], shape, &Params { n }, threads)
}

/// Computes `x [n, C] + b [C]`, in place of x if it is uniquely owned.
pub(crate) fn add_bias<B: Launch>(x: FloatTensor<B>, b: FloatTensor<B>) -> FloatTensor<B> {
    let (n, width) = rows_columns(&x.shape());
    let params = BiasParams { n, width };
    let [x] = B::launch(&BIAS_ADD, [b], [x], &params, groups_of_64(n * width));
    x
}

/// Computes `x [n, C] + b [C]`, in place of x if it is uniquely owned, and the GELU of the sum `[n, C]`.
fn gelu_of_sum<B: Launch>(x: FloatTensor<B>, b: FloatTensor<B>) -> [FloatTensor<B>; 2] {
    let (n, width) = rows_columns(&x.shape());
    let y = B::floats(&x, x.shape());
    let (params, groups) = (BiasParams { n, width }, groups_of_64(n * width));
    B::launch(&GELU_BIAS_FORWARD, [b], [x, y], &params, groups)
}

operation! {
    /// Computes `f(gate) · up`, both `[n, F]`. Their gradients are computed in place of them if they are uniquely owned.
    pub fn gated_unit(gate: Tensor<2>, up: Tensor<2>; function: GateFunction) -> Tensor<2> {
        let ([gate, up], nodes) = B::parts([gate, up]);
        let y = gated_values::<B::Inner>(gate.clone(), up.clone(), function);
        B::record(nodes, y, GatedUnit { gate, up, function })
    }
}

operation! {
    /// Computes `silu(gate) · up` of rows `x [n, 2 F]` that have gate and up one after the other → `[n, F]`. The gradient is computed in place of
    /// x if it is uniquely owned.
    pub fn swiglu_of_halves(x: Tensor<2>) -> Tensor<2> {
        let ([x], nodes) = B::parts([x]);
        let params = halves(&x.shape());
        let threads = params.n * params.width;
        let shape = [params.n, params.width];
        let y = B::Inner::made(&SWIGLU_HALVES_FORWARD, [x.clone()], shape, &params, threads);
        B::record(nodes, y, SwigluOfHalves { x })
    }
}

/// Parameters for rows of two halves.
fn halves(shape: &Shape) -> HalvesParams {
    let (n, width) = rows_columns(shape);
    HalvesParams {
        n,
        width: width / 2,
    }
}

operation! {
    /// Computes GELU in its tanh form, `[n, C]`, finite for every finite input. The gradient is computed in place of x if it is uniquely owned.
    pub fn gelu(x: Tensor<2>) -> Tensor<2> {
        let ([x], nodes) = B::parts([x]);
        let (shape, n) = (x.shape(), x.shape().num_elements());
        let y = B::Inner::made(&GELU_FORWARD, [x.clone()], shape, &Params { n }, n);
        B::record(nodes, y, Gelu { x })
    }
}

operation! {
    /// Computes [`gelu`] of `x + b`, `x [n, C]`, `b [C]`, with the sum in place of x if it is uniquely owned.
    pub fn gelu_bias(x: Tensor<2>, b: Tensor<1>) -> Tensor<2> {
        let ([x, b], nodes) = B::parts([x, b]);
        let [x, y] = gelu_of_sum::<B::Inner>(x, b);
        B::record(nodes, y, GeluBias { x })
    }
}

operation! {
    /// Computes `x [n, C] + b [C]`, in place of x if it is uniquely owned.
    pub fn bias_add(x: Tensor<2>, b: Tensor<1>) -> Tensor<2> {
        let ([x, b], nodes) = B::parts([x, b]);
        B::record(nodes, add_bias::<B::Inner>(x, b), Bias)
    }
}

operation! {
    /// Computes `x + y`, both `[n, C]`, in place of one of them if it is uniquely owned.
    pub fn residual_add(x: Tensor<2>, y: Tensor<2>) -> Tensor<2> {
        let ([x, y], nodes) = B::parts([x, y]);
        B::record(nodes, residual::residual_add::<B::Inner>(x, y), Residual)
    }
}

/// The backward pass of a gated unit.
#[derive(Debug, Clone)]
pub struct GatedUnit<T> {
    /// The input of the function.
    pub gate: T,
    /// The factor of its values.
    pub up: T,
    /// The function.
    pub function: GateFunction,
}

impl<B: Launch> Vjp<B, 2> for GatedUnit<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, _needs: [bool; 2], _: Sum<'_, B>) -> Grads<B, 2> {
        let n = dy.shape().num_elements();
        let of = [self.gate, self.up];
        let (kernel, threads) = match self.function {
            GateFunction::Gelu => {
                let groups = groups_of_64(n);
                return B::launch(&GEGLU_BACKWARD, [dy], of, &Params { n }, groups).map(Some);
            }
            GateFunction::Silu if n.is_multiple_of(4) => (&SWIGLU_BACKWARD_WIDE, n / 4),
            GateFunction::Silu => (&SWIGLU_BACKWARD, n),
        };
        B::launch(kernel, [dy], of, &Params { n }, groups_of_64(threads)).map(Some)
    }
}

/// The backward pass of SwiGLU of rows of two halves.
#[derive(Debug, Clone)]
struct SwigluOfHalves<T> {
    x: T,
}

impl<B: Launch> Vjp<B, 1> for SwigluOfHalves<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, _needs: [bool; 1], _: Sum<'_, B>) -> Grads<B, 1> {
        let params = halves(&self.x.shape());
        let groups = groups_of_64(params.n * params.width);
        B::launch(&SWIGLU_HALVES_BACKWARD, [dy], [self.x], &params, groups).map(Some)
    }
}

/// The backward pass of GELU, in place of the input if it is uniquely owned.
#[derive(Debug, Clone)]
pub struct Gelu<T> {
    /// The input.
    pub x: T,
}

impl<B: Launch> Vjp<B, 1> for Gelu<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, _needs: [bool; 1], _: Sum<'_, B>) -> Grads<B, 1> {
        let n = dy.shape().num_elements();
        B::launch(
            &GELU_BACKWARD,
            [dy],
            [self.x],
            &Params { n },
            groups_of_64(n),
        )
        .map(Some)
    }
}

/// The backward pass of [`gelu_bias`].
#[derive(Debug, Clone)]
pub struct GeluBias<T> {
    /// The sum of input and bias.
    pub x: T,
}

impl<B: Launch> Vjp<B, 2> for GeluBias<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, needs: [bool; 2], _: Sum<'_, B>) -> Grads<B, 2> {
        let [dx] = gradients::<B, 1>(Gelu { x: self.x }, dy, [true], None);
        match dx {
            Some(dx) => gradients::<B, 2>(Bias, dx, needs, None),
            None => [None, None],
        }
    }
}

/// The backward pass of `x + b`.
#[derive(Debug, Clone)]
pub struct Bias;

impl<B: Launch> Vjp<B, 2> for Bias {
    fn backward(self, dy: FloatTensor<B>, needs: [bool; 2], _: Sum<'_, B>) -> Grads<B, 2> {
        let db = needs[1].then(|| column_sum::<B>(dy.clone()));
        [needs[0].then_some(dy), db]
    }
}

/// The backward pass of `x + (y + b)`.
#[derive(Debug, Clone)]
pub struct BiasedResidual;

impl<B: Launch> Vjp<B, 3> for BiasedResidual {
    fn backward(self, dy: FloatTensor<B>, needs: [bool; 3], _: Sum<'_, B>) -> Grads<B, 3> {
        let [dx, d] = gradients::<B, 2>(Residual, dy, [needs[0], true], None);
        let [dy, db] = d.map_or([None, None], |d| {
            gradients::<B, 2>(Bias, d, [needs[1], needs[2]], None)
        });
        [dx, dy, db]
    }
}

/// The backward pass of `x + y`: both gradients are that of the sum.
#[derive(Debug, Clone)]
pub struct Residual;

impl<B: Launch> Vjp<B, 2> for Residual {
    fn backward(self, dy: FloatTensor<B>, needs: [bool; 2], _: Sum<'_, B>) -> Grads<B, 2> {
        [needs[0].then(|| dy.clone()), needs[1].then_some(dy)]
    }
}
