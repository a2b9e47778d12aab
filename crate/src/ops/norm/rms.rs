//! RMSNorm: `y = x r (w + offset)`, `r = 1 / √(mean(x²) + eps)` (arXiv:1910.07467); the offset is 0, or 1 in families that store the difference
//! from 1.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;

use crate::gpu::launch::{Launch, rows_columns};
use crate::gpu::{Kernel, KernelParams, Kernels, Words, groups_of_64};
use crate::ops::column_sum::{self, column_sum};
use crate::ops::elementwise::Residual;
use crate::ops::operation::operation;
use crate::ops::tape::{Grads, Sum, Vjp};

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[
    &FORWARD.all(),
    &FORWARD_WIDE.all(),
    &FORWARD_GROUP.all(),
    &ADD_FORWARD.all(),
    &ADD_FORWARD_WIDE.all(),
    &ADD_FORWARD_GROUP.all(),
    &BACKWARD.all(),
    &BACKWARD_WIDE.all(),
    &BACKWARD_GROUP.all(),
];

crate::kernel! {
    /// Computes `y`, and the scale `r` of each row.
    pub FORWARD = "rms_norm_forward" [64], (x, w) -> (y, scales),
    /// Shapes and ε.
    struct ForwardParams {
        /// Number of rows.
        n: usize,
        /// C, the length of a row.
        width: usize,
        /// ε, which is added to the mean square.
        eps: f32,
        /// Added to the weight.
        offset: f32,
    },
    twin forward_twin;

    /// [`FORWARD`] for C a multiple of 4.
    pub FORWARD_WIDE = "rms_norm_forward_wide" as FORWARD;
    /// [`FORWARD_WIDE`] with one workgroup per row.
    pub FORWARD_GROUP = "rms_norm_forward_group" as FORWARD;
}
crate::kernel! {
    /// Computes `sum ← x + sum`, and `y` and the scale `r` of each row of the sum.
    pub ADD_FORWARD = "rms_norm_add_forward" [64], (x, w) -> (mut sum, y, scales), ForwardParams, twin add_forward_twin;

    /// [`ADD_FORWARD`] for C a multiple of 4.
    pub ADD_FORWARD_WIDE = "rms_norm_add_forward_wide" as ADD_FORWARD;
    /// [`ADD_FORWARD_WIDE`] with one workgroup per row.
    pub ADD_FORWARD_GROUP = "rms_norm_add_forward_group" as ADD_FORWARD;
}
crate::kernel! {
    /// Computes `dx = r (dy v − x r² mean(dy v x))`, `v = w + offset`, and `dw = Σ dy x r` in parts of the rows.
    pub BACKWARD = "rms_norm_backward" [64], (x, w, scales, dy) -> (mut dx, dw),
    /// Shapes of the gradients.
    struct BackwardParams {
        /// Number of rows.
        n: usize,
        /// C, the length of a row.
        width: usize,
        /// Number of rows of a part of the weight's gradient.
        rows: usize,
        /// Number of parts of the weight's gradient; 0 if it is not requested.
        parts: usize,
        /// 1 if dx contains a sum that this gradient is added to.
        add: bool,
        /// Added to the weight.
        offset: f32,
    },
    twin backward_twin;

    /// [`BACKWARD`] for C a multiple of 4.
    pub BACKWARD_WIDE = "rms_norm_backward_wide" as BACKWARD;
    /// [`BACKWARD_WIDE`] with one workgroup per row.
    pub BACKWARD_GROUP = "rms_norm_backward_group" as BACKWARD;
}

/// Chooses the kernel for rows of `width`, and its number of workgroups for `n` rows: `any` for any width; for multiples of 4, `wide` with one
/// thread per row where barriers are slow (software adapters), and `group` with one workgroup per row where neighbouring threads should
/// read neighbouring elements (GPUs).
fn chosen<P: KernelParams, const R: usize, const W: usize>(
    software: bool,
    n: usize,
    width: usize,
    [any, wide, group]: [&'static Kernel<P, R, W>; 3],
) -> (&'static Kernel<P, R, W>, u32) {
    match (width.is_multiple_of(4), software) {
        (false, _) => (any, groups_of_64(n)),
        (true, true) => (wide, groups_of_64(n)),
        (true, false) => (group, n as u32),
    }
}

fn forward_twin([x, w]: [&[u32]; 2], [y, scales]: [&mut [u32]; 2], p: &ForwardParams) {
    let width = p.width;
    for row in 0..p.n {
        let x = &x.floats()[row * width..][..width];
        let mean = x.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / width as f64;
        let r = 1.0 / (mean + f64::from(p.eps)).sqrt();
        for c in 0..width {
            y.set(
                row * width + c,
                f64::from(x[c]) * r * (w.wide(c) + f64::from(p.offset)),
            );
        }
        scales.set(row, r);
    }
}

fn add_forward_twin([x, w]: [&[u32]; 2], [sum, y, scales]: [&mut [u32]; 3], p: &ForwardParams) {
    for i in 0..p.n * p.width {
        sum.floats_mut()[i] += x.floats()[i];
    }
    forward_twin([sum, w], [y, scales], p);
}

fn backward_twin([x, w, scales, dy]: [&[u32]; 4], [dx, dw]: [&mut [u32]; 2], p: &BackwardParams) {
    let width = p.width;
    for row in 0..p.n {
        let at = row * width;
        let x = |c: usize| x.wide(at + c);
        let d = |c: usize| dy.wide(at + c) * (w.wide(c) + f64::from(p.offset));
        let r = scales.wide(row);
        let mean = (0..width).map(|c| d(c) * x(c)).sum::<f64>() / width as f64;
        for c in 0..width {
            let before = if p.add { dx.floats()[at + c] } else { 0.0 };
            // Rounded before the addition, so that the bits equal those of two launches.
            dx.floats_mut()[at + c] = before + (r * (d(c) - x(c) * r * r * mean)) as f32;
        }
    }
    let cut = column_sum::Params {
        n: p.n,
        width: p.width,
        rows: p.rows,
        parts: p.parts,
    };
    for i in 0..p.parts * width {
        let term = |r: usize| {
            let at = r * width + i % width;
            dy.wide(at) * x.wide(at) * scales.wide(r)
        };
        dw.set(i, cut.part(i / width).map(term).sum::<f64>());
    }
}

/// The numbers of a norm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Constants {
    /// ε, which is added to the mean square.
    pub eps: f64,
    /// Added to the weight.
    pub offset: f64,
}

impl Constants {
    fn params(self, n: usize, width: usize) -> ForwardParams {
        ForwardParams {
            n,
            width,
            eps: self.eps as f32,
            offset: self.offset as f32,
        }
    }
}

/// Computes RMSNorm: `x [n, C]`, `w [C]` → `y [n, C]`, and the scale of each row `[n]`.
pub fn forward<B: Launch>(
    x: FloatTensor<B>,
    w: FloatTensor<B>,
    of: Constants,
) -> [FloatTensor<B>; 2] {
    let (n, width) = rows_columns(&x.shape());
    let y = B::floats(&x, x.shape());
    let scales = B::floats(&x, [n]);
    let params = of.params(n, width);
    let (kernel, groups) = chosen(
        B::software(&x),
        n,
        width,
        [&FORWARD, &FORWARD_WIDE, &FORWARD_GROUP],
    );
    B::launch(kernel, [x, w], [y, scales], &params, groups)
}

/// Computes `x + addend`, both `[n, C]`, `w [C]` → the sum `[n, C]` (in place of the addend if it is uniquely owned), its norm `[n, C]`, and the
/// scale of each row `[n]`.
pub(crate) fn add_forward<B: Launch>(
    x: FloatTensor<B>,
    addend: FloatTensor<B>,
    w: FloatTensor<B>,
    of: Constants,
) -> [FloatTensor<B>; 3] {
    let (n, width) = rows_columns(&x.shape());
    let y = B::floats(&x, x.shape());
    let scales = B::floats(&x, [n]);
    let params = of.params(n, width);
    let (kernel, groups) = chosen(
        B::software(&x),
        n,
        width,
        [&ADD_FORWARD, &ADD_FORWARD_WIDE, &ADD_FORWARD_GROUP],
    );
    B::launch(kernel, [x, w], [addend, y, scales], &params, groups)
}

/// The backward pass of RMSNorm.
#[derive(Debug, Clone)]
pub struct RmsNorm<T> {
    /// Input rows `[n, C]`.
    pub x: T,
    /// Weight `[C]`.
    pub w: T,
    /// Scale of each row `[n]`.
    pub scales: T,
    /// Added to the weight.
    pub offset: f64,
}

impl<B: Launch> Vjp<B, 2> for RmsNorm<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, needs: [bool; 2], sum: Sum<'_, B>) -> Grads<B, 2> {
        let Self {
            x,
            w,
            scales,
            offset,
        } = self;
        let (n, width) = rows_columns(&x.shape());
        let cut = column_sum::Params::cut(n, width);
        let parts = if needs[1] { cut.parts } else { 0 };
        let params = BackwardParams {
            n,
            width,
            rows: cut.rows,
            parts,
            add: sum.is_some(),
            offset: offset as f32,
        };
        let dx = sum.take().unwrap_or_else(|| B::floats(&x, x.shape()));
        let dw = B::floats(&x, [parts.max(1), width]);
        let (kernel, of_rows) = chosen(
            B::software(&dy),
            n,
            width,
            [&BACKWARD, &BACKWARD_WIDE, &BACKWARD_GROUP],
        );
        let columns = if width.is_multiple_of(4) {
            width / 4
        } else {
            width
        };
        let groups = of_rows + groups_of_64(parts * columns);
        let [dx, dw] = B::launch(kernel, [x, w, scales, dy], [dx, dw], &params, groups);
        [
            needs[0].then_some(dx),
            needs[1].then(|| column_sum::<B>(dw)),
        ]
    }
}

operation! {
    /// Computes the RMSNorm of the rows of `x [n, C]` with `weight [C]`. For norms of heads, `x` is `[n · heads, H]`.
    pub fn rms_norm(x: Tensor<2>, weight: Tensor<1>; of: Constants) -> Tensor<2> {
        let ([x, w], nodes) = B::parts([x, weight]);
        let [y, scales] = forward::<B::Inner>(x.clone(), w.clone(), of);
        B::record(nodes, y, RmsNorm { x, w, scales, offset: of.offset })
    }
}

operation! {
    /// Computes `x + y`, both `[n, C]`, and its RMSNorm with `weight [C]`. The sum is computed in place of y if it is uniquely owned.
    pub fn add_rms_norm(x: Tensor<2>, y: Tensor<2>, weight: Tensor<1>; of: Constants) -> (Tensor<2>, Tensor<2>) {
        let ([x, y, w], [of_x, of_y, of_w]) = B::parts([x, y, weight]);
        let [sum, normed, scales] = add_forward::<B::Inner>(x, y, w.clone(), of);
        let stream = B::record([of_x, of_y], sum.clone(), Residual);
        let vjp = RmsNorm { x: sum, w, scales, offset: of.offset };
        let normed = B::record([B::node(&stream), of_w], normed, vjp);
        (stream, normed)
    }
}
