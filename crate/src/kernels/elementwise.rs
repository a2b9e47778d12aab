//! Operations of one thread per element: SwiGLU, GELU, the bias, the residual stream.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::DType;

use super::autodiff::Rule;
use super::column_sum::column_sum;
use super::kernel::{Kernel, Words, groups_of_64, read, update, write};
use super::launch::{Launch, rows_columns};
use crate::{kernel_params, kernel_record};

kernel_params! {
    /// Elements.
    pub struct Params {
        /// Their number.
        n: u32,
    }
}

kernel_params! {
    /// Shape of rows that share a bias.
    pub struct BiasParams {
        /// Rows.
        n: u32,
        /// Columns.
        width: u32,
    }
}

kernel_record! {
    /// `y = silu(gate) up`
    SWIGLU_FORWARD, "swiglu_forward" in "../../../shaders/", [read("gate"), read("up"), write("y")], Params, swiglu_twin
}
kernel_record! {
    /// [`SWIGLU_FORWARD`] of a multiple of 4 elements.
    SWIGLU_FORWARD_WIDE, "swiglu_forward_wide" in "../../../shaders/", [read("gate"), read("up"), write("y")], Params, swiglu_twin
}
kernel_record! {
    /// `gate ← dgate`, `up ← dup`
    SWIGLU_BACKWARD, "swiglu_backward" in "../../../shaders/", [update("gate"), update("up"), read("dy")], Params, swiglu_backward_twin
}
kernel_record! {
    /// [`SWIGLU_BACKWARD`] of a multiple of 4 elements.
    SWIGLU_BACKWARD_WIDE, "swiglu_backward_wide" in "../../../shaders/",
    [update("gate"), update("up"), read("dy")], Params, swiglu_backward_twin
}
kernel_record! {
    /// `y = x (1 + tanh(…)) / 2`
    GELU_FORWARD, "gelu_forward" in "../../../shaders/", [read("x"), write("y")], Params, |buffers, params| {
        let [x, y] = buffers else { return };
        for i in 0..Params::from_words(params).n as usize {
            let v = f64::from(x.floats()[i]);
            y.floats_mut()[i] = (0.5 * v * (1.0 + gelu_inner(v).tanh())) as f32;
        }
    }
}
kernel_record! {
    /// `x ← dy gelu'(x)`
    GELU_BACKWARD, "gelu_backward" in "../../../shaders/", [update("x"), read("dy")], Params, |buffers, params| {
        let [x, dy] = buffers else { return };
        for i in 0..Params::from_words(params).n as usize {
            let v = f64::from(x.floats()[i]);
            let t = gelu_inner(v).tanh();
            let slope = if v.abs() > 20.0 { 0.0 } else { 0.5 * v * (1.0 - t * t) * ROOT_2_PI * (1.0 + 3.0 * 0.044715 * v * v) };
            x.floats_mut()[i] = (f64::from(dy.floats()[i]) * (0.5 * (1.0 + t) + slope)) as f32;
        }
    }
}
kernel_record! {
    /// `x[r, c] ← x[r, c] + b[c]`
    BIAS_ADD, "bias_add" in "../../../shaders/", [update("x"), read("b")], BiasParams, bias_twin
}
kernel_record! {
    /// `x ← x + y`
    RESIDUAL_ADD, "residual_add" in "../../../shaders/", [update("x"), read("y")], Params, |buffers, params| {
        let [x, y] = buffers else { return };
        for i in 0..Params::from_words(params).n as usize {
            x.floats_mut()[i] += y.floats()[i];
        }
    }
}

/// √(2/π)
const ROOT_2_PI: f64 = 0.797_884_560_802_865_4;

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn gelu_inner(x: f64) -> f64 {
    ROOT_2_PI * (x + 0.044715 * x * x * x)
}

fn swiglu_twin(buffers: &mut [Words<'_>], params: &[u32]) {
    let [gate, up, y] = buffers else { return };
    for i in 0..Params::from_words(params).n as usize {
        let (g, u) = (f64::from(gate.floats()[i]), f64::from(up.floats()[i]));
        y.floats_mut()[i] = (g * sigmoid(g) * u) as f32;
    }
}

fn swiglu_backward_twin(buffers: &mut [Words<'_>], params: &[u32]) {
    let [gate, up, dy] = buffers else { return };
    for i in 0..Params::from_words(params).n as usize {
        let (g, u, d) = (f64::from(gate.floats()[i]), f64::from(up.floats()[i]), f64::from(dy.floats()[i]));
        let s = sigmoid(g);
        gate.floats_mut()[i] = (d * u * s * (1.0 + g * (1.0 - s))) as f32;
        up.floats_mut()[i] = (d * g * s) as f32;
    }
}

fn bias_twin(buffers: &mut [Words<'_>], params: &[u32]) {
    let p = BiasParams::from_words(params);
    let [x, b] = buffers else { return };
    for i in 0..(p.n * p.width) as usize {
        x.floats_mut()[i] += b.floats()[i % p.width as usize];
    }
}

fn params_of<B: Launch>(tensor: &FloatTensor<B>) -> (Vec<u32>, u32) {
    let n = tensor.shape().num_elements();
    (Params { n: n as u32 }.words(), groups_of_64(n))
}

fn fresh<B: Launch>(kernel: &'static Kernel, mut inputs: Vec<FloatTensor<B>>) -> FloatTensor<B> {
    let y = B::empty(&inputs[0], inputs[0].shape(), DType::F32);
    let (params, groups) = params_of::<B>(&y);
    inputs.push(y);
    B::one(kernel, inputs, &params, groups)
}

/// `silu(gate) up`, any shape
pub fn swiglu<B: Launch>(gate: FloatTensor<B>, up: FloatTensor<B>) -> FloatTensor<B> {
    let n = gate.shape().num_elements();
    if !n.is_multiple_of(4) {
        return fresh::<B>(&SWIGLU_FORWARD, vec![gate, up]);
    }
    let y = B::empty(&gate, gate.shape(), DType::F32);
    B::one(&SWIGLU_FORWARD_WIDE, vec![gate, up, y], &Params { n: n as u32 }.words(), groups_of_64(n / 4))
}

/// GELU in its tanh form, any shape
pub fn gelu<B: Launch>(x: FloatTensor<B>) -> FloatTensor<B> {
    fresh::<B>(&GELU_FORWARD, vec![x])
}

/// `x [n, C] + b [C]`, in place of x if it is uniquely owned
pub fn bias_add<B: Launch>(x: FloatTensor<B>, b: FloatTensor<B>) -> FloatTensor<B> {
    let (n, width) = rows_columns(&x.shape());
    let params = BiasParams { n: n as u32, width: width as u32 }.words();
    B::one(&BIAS_ADD, vec![x, b], &params, groups_of_64(n * width))
}

/// `x + y`, in place of one of them if it is uniquely owned
pub fn residual_add<B: Launch>(x: FloatTensor<B>, y: FloatTensor<B>) -> FloatTensor<B> {
    let (x, y) = if x.can_mut() || !y.can_mut() { (x, y) } else { (y, x) };
    let (params, groups) = params_of::<B>(&x);
    B::one(&RESIDUAL_ADD, vec![x, y], &params, groups)
}

/// Gradients of SwiGLU, in place of the inputs if they are uniquely owned.
#[derive(Debug, Clone)]
pub struct Swiglu<T> {
    /// Before the SiLU.
    pub gate: T,
    /// The factor.
    pub up: T,
}

impl<B: Launch> Rule<B, 2> for Swiglu<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, _needs: [bool; 2]) -> [Option<FloatTensor<B>>; 2] {
        let n = dy.shape().num_elements();
        let (kernel, threads) = if n.is_multiple_of(4) { (&SWIGLU_BACKWARD_WIDE, n / 4) } else { (&SWIGLU_BACKWARD, n) };
        let params = Params { n: n as u32 }.words();
        B::two(kernel, vec![self.gate, self.up, dy], &params, groups_of_64(threads)).map(Some)
    }
}

/// Gradient of GELU, in place of the input if it is uniquely owned.
#[derive(Debug, Clone)]
pub struct Gelu<T> {
    /// The input.
    pub x: T,
}

impl<B: Launch> Rule<B, 1> for Gelu<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, _needs: [bool; 1]) -> [Option<FloatTensor<B>>; 1] {
        let (params, groups) = params_of::<B>(&dy);
        [Some(B::one(&GELU_BACKWARD, vec![self.x, dy], &params, groups))]
    }
}

/// Gradients of `x + b`.
#[derive(Debug, Clone)]
pub struct Bias;

impl<B: Launch> Rule<B, 2> for Bias {
    fn backward(self, dy: FloatTensor<B>, needs: [bool; 2]) -> [Option<FloatTensor<B>>; 2] {
        let db = needs[1].then(|| column_sum::<B>(dy.clone()));
        [needs[0].then_some(dy), db]
    }
}

/// Gradients of `x + y`: the same one twice.
#[derive(Debug, Clone)]
pub struct Residual;

impl<B: Launch> Rule<B, 2> for Residual {
    fn backward(self, dy: FloatTensor<B>, needs: [bool; 2]) -> [Option<FloatTensor<B>>; 2] {
        [needs[0].then(|| dy.clone()), needs[1].then_some(dy)]
    }
}
