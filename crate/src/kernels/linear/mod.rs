//! Linear layers: `y = x Wᵀ`, weights `[m, k]` in f32 or packed bf16, the sums in f32.
//!
//! Each of the three products picks a kernel by shape alone: the register block where widths are multiples of 4, `linear_row` for
//! few rows, the `_any` kernels else. On the CPU, Burn's matmul stands in for the twins, which remain the definition.

pub mod kernels;

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::{DType, Shape};

use super::autodiff::Rule;
use super::launch::Launch;
use kernels::{AnyParams, AnyWeightParams, BackwardParams, ForwardParams};

/// Up to this many rows one thread computes one output: the register block would repeat rows.
const FEW_ROWS: usize = 2;

/// Threads of a workgroup of every linear kernel.
const GROUP: usize = 64;

fn groups(threads: usize) -> u32 {
    threads.div_ceil(GROUP) as u32
}

fn rows_columns(shape: &Shape) -> (usize, usize) {
    let columns = shape.last().copied().unwrap_or(1);
    (if columns == 0 { 0 } else { shape.num_elements() / columns }, columns)
}

/// `x [n, k] · w [m, k]ᵀ → [n, m]`
pub fn forward<B: Launch>(x: FloatTensor<B>, w: FloatTensor<B>) -> FloatTensor<B> {
    let ((n, k), (m, _)) = (rows_columns(&x.shape()), rows_columns(&w.shape()));
    if B::TWINS {
        return B::float_matmul(x, B::float_transpose(widened::<B>(w)));
    }
    let y = B::empty(&x, [n, m].into(), DType::F32);
    let packed = w.dtype() == DType::BF16;
    let (kernel, params, threads) = if k % 4 != 0 {
        let params = AnyParams { n: n as u32, m: m as u32, k: k as u32, packed: u32::from(packed) };
        (&kernels::FORWARD_ANY, params.words(), n.div_ceil(4) * m.div_ceil(4))
    } else {
        let params = ForwardParams { n: n as u32, m: m as u32, k4: k as u32 / 4 }.words();
        match (n <= FEW_ROWS, packed) {
            (true, false) => (&kernels::ROW, params, n * m),
            (true, true) => (&kernels::ROW_BF16, params, n * m),
            (false, false) => (&kernels::FORWARD, params, n.div_ceil(4) * m.div_ceil(4)),
            (false, true) => (&kernels::FORWARD_BF16, params, n.div_ceil(4) * m.div_ceil(4)),
        }
    };
    B::one(kernel, vec![x, w, y], &params, groups(threads))
}

/// `dy [n, m] · w [m, k] → [n, k]`
pub fn backward_input<B: Launch>(dy: FloatTensor<B>, w: FloatTensor<B>) -> FloatTensor<B> {
    let ((n, m), (_, k)) = (rows_columns(&dy.shape()), rows_columns(&w.shape()));
    if B::TWINS {
        return B::float_matmul(dy, widened::<B>(w));
    }
    let dx = B::empty(&dy, [n, k].into(), DType::F32);
    let packed = w.dtype() == DType::BF16;
    let (kernel, params) = if m % 4 != 0 || k % 4 != 0 {
        let params = AnyParams { n: n as u32, m: m as u32, k: k as u32, packed: u32::from(packed) };
        (&kernels::BACKWARD_INPUT_ANY, params.words())
    } else {
        let params = BackwardParams { n: n as u32, m4: m as u32 / 4, k4: k as u32 / 4 }.words();
        (if packed { &kernels::BACKWARD_INPUT_BF16 } else { &kernels::BACKWARD_INPUT }, params)
    };
    B::one(kernel, vec![dy, w, dx], &params, groups(n.div_ceil(4) * k.div_ceil(4)))
}

/// `dy [n, m]ᵀ · x [n, k] → [m, k]`, f32 whatever the weights are
pub fn backward_weight<B: Launch>(dy: FloatTensor<B>, x: FloatTensor<B>) -> FloatTensor<B> {
    let ((n, m), (_, k)) = (rows_columns(&dy.shape()), rows_columns(&x.shape()));
    if B::TWINS {
        return B::float_matmul(B::float_transpose(dy), x);
    }
    let dw = B::empty(&x, [m, k].into(), DType::F32);
    let (kernel, params) = if m % 4 != 0 || k % 4 != 0 {
        (&kernels::BACKWARD_WEIGHT_ANY, AnyWeightParams { n: n as u32, m: m as u32, k: k as u32 }.words())
    } else {
        (&kernels::BACKWARD_WEIGHT, BackwardParams { n: n as u32, m4: m as u32 / 4, k4: k as u32 / 4 }.words())
    };
    B::one(kernel, vec![dy, x, dw], &params, groups(m.div_ceil(4) * k.div_ceil(4)))
}

/// The weights in f32, for the CPU only.
fn widened<B: Launch>(w: FloatTensor<B>) -> FloatTensor<B> {
    if w.dtype() == DType::BF16 { B::float_cast(w, burn::tensor::FloatDType::F32) } else { w }
}

/// Gradients of `y = x Wᵀ`.
#[derive(Debug, Clone)]
pub struct Linear<T> {
    /// Input rows.
    pub x: T,
    /// Weights, still packed if they were.
    pub w: T,
}

impl<B: Launch> Rule<B, 2> for Linear<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, needs: [bool; 2]) -> [Option<FloatTensor<B>>; 2] {
        let dx = needs[0].then(|| backward_input::<B>(dy.clone(), self.w));
        let dw = needs[1].then(|| backward_weight::<B>(dy, self.x));
        [dx, dw]
    }
}

/// Gradients of `y = x W`, weights `[k, m]` (GPT-2's Conv1D): the same kernels in other roles.
#[derive(Debug, Clone)]
pub struct Conv1d<T> {
    /// Input rows.
    pub x: T,
    /// Weights, still packed if they were.
    pub w: T,
}

impl<B: Launch> Rule<B, 2> for Conv1d<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, needs: [bool; 2]) -> [Option<FloatTensor<B>>; 2] {
        let dx = needs[0].then(|| forward::<B>(dy.clone(), self.w));
        let dw = needs[1].then(|| backward_weight::<B>(self.x, dy));
        [dx, dw]
    }
}
