//! LayerNorm: `y = (x − mean) r w + b`, `r = 1 / √(var + eps)` (arXiv:1607.06450).

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::Tensor;

use crate::gpu::launch::{Launch, rows_columns};
use crate::gpu::{Kernels, Words, groups_of_64};
use crate::ops::column_sum::{self, column_sum};
use crate::ops::elementwise::{BiasedResidual, Residual, add_bias};
use crate::ops::operation::operation;
use crate::ops::residual::residual_add;
use crate::ops::tape::{Grads, Sum, Vjp};

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[
    &FORWARD.all(),
    &FORWARD_GROUP.all(),
    &ADD_FORWARD_GROUP.all(),
    &BACKWARD_INPUT.all(),
    &BACKWARD_WEIGHT.all(),
    &BACKWARD_GROUP.all(),
];

crate::kernel! {
    /// Computes `y`, and the mean and `r` of each row.
    pub FORWARD = "layer_norm_forward" [64], (x, w, b) -> (y, stats),
    /// Shapes and ε.
    struct ForwardParams {
        /// Number of rows.
        n: usize,
        /// C, the length of a row.
        width: usize,
        /// ε, which is added to the variance.
        eps: f32,
    },
    twin forward_twin;

    /// [`FORWARD`] for C a multiple of 4, with one workgroup per row.
    pub FORWARD_GROUP = "layer_norm_forward_group" as FORWARD;
}
crate::kernel! {
    /// Computes `sum ← x + (sum + bias)`, and [`FORWARD`] of the sum, for C a multiple of 4, with one workgroup per row.
    pub ADD_FORWARD_GROUP = "layer_norm_add_forward_group" [64], (x, bias, w, b) -> (mut sum, y, stats),
    /// Shapes of the sum and its norm.
    struct AddParams {
        /// Number of rows.
        n: usize,
        /// C, the length of a row.
        width: usize,
        /// ε, which is added to the variance.
        eps: f32,
        /// 1 where there is a bias.
        biased: bool,
    },
    twin |[x, bias, w, b], [sum, y, stats], p| {
        let width = p.width;
        for i in 0..p.n * width {
            let added = sum.floats()[i] + if p.biased { bias.floats()[i % width] } else { 0.0 };
            sum.floats_mut()[i] = x.floats()[i] + added;
        }
        forward_twin([&*sum, w, b], [y, stats], &ForwardParams { n: p.n, width: p.width, eps: p.eps });
    }
}
crate::kernel! {
    /// Computes `dx = r (dy w − mean(dy w) − z mean(dy w z))`, `z = (x − mean) r`.
    pub BACKWARD_INPUT = "layer_norm_backward_input" [64], (x, w, stats, dy) -> (dx),
    /// Shapes of the input's gradient.
    struct BackwardParams {
        /// Number of rows.
        n: usize,
        /// C, the length of a row.
        width: usize,
    },
    twin backward_input_twin
}
crate::kernel! {
    /// Computes `dw = Σ dy z` and `db = Σ dy` in parts of the rows.
    pub BACKWARD_WEIGHT = "layer_norm_backward_weight" [64], (x, stats, dy) -> (dw, db), column_sum::Params, twin backward_weight_twin
}
crate::kernel! {
    /// Computes all of these gradients in one dispatch, for C a multiple of 4, dx with one workgroup per row.
    pub BACKWARD_GROUP = "layer_norm_backward_group" [64], (x, w, stats, dy) -> (mut dx, dw, db),
    /// Shapes of the gradients.
    struct GroupParams {
        /// Number of rows.
        n: usize,
        /// C, the length of a row.
        width: usize,
        /// Number of rows of a part of the gradients of weight and bias.
        rows: usize,
        /// Number of parts of these gradients; 0 if they are not requested.
        parts: usize,
        /// 1 if dx contains a sum that this gradient is added to.
        add: bool,
    },
    twin backward_twin
}

fn forward_twin([x, w, b]: [&[u32]; 3], [y, stats]: [&mut [u32]; 2], p: &ForwardParams) {
    let width = p.width;
    for row in 0..p.n {
        let x = &x.floats()[row * width..][..width];
        let mean = x.iter().map(|&v| f64::from(v)).sum::<f64>() / width as f64;
        let variance = x
            .iter()
            .map(|&v| (f64::from(v) - mean).powi(2))
            .sum::<f64>()
            / width as f64;
        let r = 1.0 / (variance + f64::from(p.eps)).sqrt();
        for c in 0..width {
            let z = (f64::from(x[c]) - mean) * r;
            y.set(row * width + c, z * w.wide(c) + b.wide(c));
        }
        stats.set(2 * row, mean);
        stats.set(2 * row + 1, r);
    }
}

fn backward_input_twin([x, w, stats, dy]: [&[u32]; 4], [dx]: [&mut [u32]; 1], p: &BackwardParams) {
    let width = p.width;
    for row in 0..p.n {
        let at = row * width;
        let (mean, r) = (stats.wide(2 * row), stats.wide(2 * row + 1));
        let z = |c: usize| (x.wide(at + c) - mean) * r;
        let d = |c: usize| dy.wide(at + c) * w.wide(c);
        let first = (0..width).map(d).sum::<f64>() / width as f64;
        let second = (0..width).map(|c| d(c) * z(c)).sum::<f64>() / width as f64;
        for c in 0..width {
            dx.set(at + c, r * (d(c) - first - z(c) * second));
        }
    }
}

fn backward_weight_twin(
    [x, stats, dy]: [&[u32]; 3],
    [dw, db]: [&mut [u32]; 2],
    p: &column_sum::Params,
) {
    let width = p.width;
    for i in 0..p.parts * width {
        let dy = |r: usize| dy.wide(r * width + i % width);
        let z = |r: usize| {
            let x = x.wide(r * width + i % width);
            (x - stats.wide(2 * r)) * stats.wide(2 * r + 1)
        };
        dw.set(i, p.part(i / width).map(|r| dy(r) * z(r)).sum::<f64>());
        db.set(i, p.part(i / width).map(dy).sum::<f64>());
    }
}

fn backward_twin([x, w, stats, dy]: [&[u32]; 4], [dx, dw, db]: [&mut [u32]; 3], p: &GroupParams) {
    let mut made = vec![0; dx.len()];
    backward_input_twin(
        [x, w, stats, dy],
        [&mut made],
        &BackwardParams {
            n: p.n,
            width: p.width,
        },
    );
    for (sum, made) in dx.floats_mut().iter_mut().zip(made.floats()) {
        // Rounded before the addition, so that the bits equal those of two launches.
        *sum = if p.add { *sum } else { 0.0 } + made;
    }
    let cut = column_sum::Params {
        n: p.n,
        width: p.width,
        rows: p.rows,
        parts: p.parts,
    };
    backward_weight_twin([x, stats, dy], [dw, db], &cut);
}

/// Computes LayerNorm: `x [n, C]`, `w`, `b [C]` → `y [n, C]`, and the mean and scale of each row `[n, 2]`.
pub fn forward<B: Launch>(
    x: FloatTensor<B>,
    w: FloatTensor<B>,
    b: FloatTensor<B>,
    eps: f32,
) -> [FloatTensor<B>; 2] {
    let (n, width) = rows_columns(&x.shape());
    let y = B::floats(&x, x.shape());
    let stats = B::floats(&x, [n, 2]);
    let params = ForwardParams { n, width, eps };
    let (kernel, groups) = if by_groups::<B>(&x, width) {
        (&FORWARD_GROUP, n as u32)
    } else {
        (&FORWARD, groups_of_64(n))
    };
    B::launch(kernel, [x, w, b], [y, stats], &params, groups)
}

/// Computes `x + (y + bias)`, `x`, `y [n, C]`, `bias`, `w`, `b [C]` → the sum `[n, C]` (in place of y if it is uniquely owned), its norm `[n, C]`,
/// and the mean and scale of each row `[n, 2]`.
pub(crate) fn add_forward<B: Launch>(
    x: FloatTensor<B>,
    y: FloatTensor<B>,
    bias: Option<FloatTensor<B>>,
    [w, b]: [FloatTensor<B>; 2],
    eps: f32,
) -> [FloatTensor<B>; 3] {
    let (n, width) = rows_columns(&x.shape());
    if !by_groups::<B>(&x, width) {
        let y = bias.into_iter().fold(y, add_bias::<B>);
        let sum = residual_add::<B>(x, y);
        let [y, stats] = forward::<B>(sum.clone(), w, b, eps);
        return [sum, y, stats];
    }
    let params = AddParams {
        n,
        width,
        eps,
        biased: bias.is_some(),
    };
    let bias = bias.unwrap_or_else(|| B::floats(&x, [4]));
    let (normed, stats) = (B::floats(&x, x.shape()), B::floats(&x, [n, 2]));
    B::launch(
        &ADD_FORWARD_GROUP,
        [x, bias, w, b],
        [y, normed, stats],
        &params,
        n as u32,
    )
}

/// Returns true if one workgroup takes one row: on a GPU neighbouring threads should read neighbouring elements.
fn by_groups<B: Launch>(x: &FloatTensor<B>, width: usize) -> bool {
    !B::software(x) && width.is_multiple_of(4)
}

/// The backward pass of LayerNorm.
#[derive(Debug, Clone)]
pub struct LayerNorm<T> {
    /// Input rows `[n, C]`.
    pub x: T,
    /// Weight `[C]`.
    pub w: T,
    /// Mean and scale of each row `[n, 2]`.
    pub stats: T,
}

/// Computes dx, added to `sum` if there is one, dw and db, with one workgroup per row.
fn backward_by_groups<B: Launch>(
    of: LayerNorm<FloatTensor<B>>,
    dy: FloatTensor<B>,
    needs: [bool; 3],
    sum: Option<FloatTensor<B>>,
) -> Grads<B, 3> {
    let LayerNorm { x, w, stats } = of;
    let (n, width) = rows_columns(&x.shape());
    let cut = column_sum::Params::cut(n, width);
    let parts = if needs[1] || needs[2] { cut.parts } else { 0 };
    let params = GroupParams {
        n,
        width,
        rows: cut.rows,
        parts,
        add: sum.is_some(),
    };
    let dx = sum.unwrap_or_else(|| B::floats(&x, x.shape()));
    let [dw, db] = [(); 2].map(|()| B::floats(&x, [parts.max(1), width]));
    let groups = n as u32 + groups_of_64(parts * width / 4);
    let [dx, dw, db] = B::launch(
        &BACKWARD_GROUP,
        [x, w, stats, dy],
        [dx, dw, db],
        &params,
        groups,
    );
    [
        needs[0].then_some(dx),
        needs[1].then(|| column_sum::<B>(dw)),
        needs[2].then(|| column_sum::<B>(db)),
    ]
}

impl<B: Launch> Vjp<B, 3> for LayerNorm<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, needs: [bool; 3], sum: Sum<'_, B>) -> Grads<B, 3> {
        let (n, width) = rows_columns(&self.x.shape());
        if by_groups::<B>(&self.x, width) {
            return backward_by_groups::<B>(self, dy, needs, sum.take());
        }
        let Self { x, w, stats } = self;
        let (mut dw, mut db) = (None, None);
        if needs[1] || needs[2] {
            let params = column_sum::Params::cut(n, width);
            let [part_w, part_b] = [(); 2].map(|()| B::floats(&x, [params.parts, width]));
            let read = [x.clone(), stats.clone(), dy.clone()];
            let [part_w, part_b] = B::launch(
                &BACKWARD_WEIGHT,
                read,
                [part_w, part_b],
                &params,
                params.groups(),
            );
            dw = needs[1].then(|| column_sum::<B>(part_w));
            db = needs[2].then(|| column_sum::<B>(part_b));
        }
        let dx = needs[0].then(|| {
            let (shape, params) = (x.shape(), BackwardParams { n, width });
            B::made(&BACKWARD_INPUT, [x, w, stats, dy], shape, &params, n)
        });
        [dx, dw, db]
    }
}

operation! {
    /// Computes the LayerNorm of the rows of `x [n, C]` with `weight` and `bias [C]`.
    pub fn layer_norm(x: Tensor<2>, weight: Tensor<1>, bias: Tensor<1>; eps: f64) -> Tensor<2> {
        let ([x, w, b], nodes) = B::parts([x, weight, bias]);
        let [y, stats] = forward::<B::Inner>(x.clone(), w.clone(), b, eps as f32);
        B::record(nodes, y, LayerNorm { x, w, stats })
    }
}

operation! {
    /// Computes [`add_layer_norm`]; `bias` is read if there is one.
    fn add_norm(x: Tensor<2>, y: Tensor<2>, bias: Tensor<1>, w: Tensor<1>, b: Tensor<1>; biased: bool, eps: f64) -> (Tensor<2>, Tensor<2>) {
        let ([x, y, bias, w, b], [of_x, of_y, of_bias, of_w, of_b]) = B::parts([x, y, bias, w, b]);
        let [sum, normed, stats] = add_forward::<B::Inner>(x, y, biased.then_some(bias), [w.clone(), b], eps as f32);
        let stream = if biased {
            B::record([of_x, of_y, of_bias], sum.clone(), BiasedResidual)
        } else {
            B::record([of_x, of_y], sum.clone(), Residual)
        };
        let normed = B::record([B::node(&stream), of_w, of_b], normed, LayerNorm { x: sum, w, stats });
        (stream, normed)
    }
}

/// Computes `x + (y + bias)`, `x` and `y [n, C]`, `bias [C]`, and its LayerNorm with `weight` and `b [C]`. The sum is computed in place of y if it is
/// uniquely owned.
pub fn add_layer_norm(
    x: Tensor<2>,
    y: Tensor<2>,
    bias: Option<Tensor<1>>,
    [weight, b]: [Tensor<1>; 2],
    eps: f64,
) -> (Tensor<2>, Tensor<2>) {
    let biased = bias.is_some();
    // A binding cannot be omitted: without a bias this one is not read.
    let bias = bias.unwrap_or_else(|| Tensor::empty([4], &x.device()));
    add_norm(x, y, bias, weight, b, biased, eps)
}
