//! Two or three products of one input in one dispatch, for GPUs: each alone would have too few workgroups to fill a GPU. Weights are f32 or bf16.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::{DType, Shape};

use super::tiles::{tiled, tiling};
use super::{Linear, SLICE, twins};
use crate::gpu::StorageType::{Bf16, F32};
use crate::gpu::launch::{Launch, rows_columns};
use crate::gpu::{Kernels, Stored, Words};
use crate::ops::tape::gradients;
use crate::ops::weights::Weights;

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[
    &FORWARD_TILE.all(),
    &FORWARD_TILE_SMALL.all(),
    &BACKWARD_THREE_TILE.all(),
    &BACKWARD_THREE_TILE_SMALL.all(),
    &BACKWARD_TWO_TILE.all(),
    &BACKWARD_TWO_TILE_SMALL.all(),
];

crate::kernel! {
    /// Computes `y_p = x W_pᵀ` for three matrices by tiles in workgroup memory, k a multiple of 4.
    pub FORWARD_TILE = "linear_forward_three_tile" of three4 through "chunks/forward_tile" [64], (w0, w1, w2, x) -> (y0, y1, y2),
    /// Shapes of three products.
    struct ForwardParams {
        /// Number of rows of x and of each y.
        n: usize,
        /// Number of columns of all y, and of rows of all w.
        m: usize,
        /// Number of columns of x and of each w, divided by 4.
        k4: usize,
        /// Number of columns of y0, and of rows of w0.
        m0: usize,
        /// Number of columns of y1, and of rows of w1.
        m1: usize,
    },
    twin forward_twin;

    /// [`FORWARD_TILE`] by tiles of half the size.
    pub FORWARD_TILE_SMALL = "linear_forward_three_tile_small" of three4 through "chunks/forward_tile_small"
        text (crate::kernel!(@source "linear_forward_three_tile")) as FORWARD_TILE;
}
crate::kernel! {
    /// Computes `dx = Σ dy_p W_p` and `dW_p = dy_pᵀ x` for three matrices by tiles, the dy_p one after another; all widths multiples of 4.
    pub BACKWARD_THREE_TILE = "linear_backward_three_tile" of three4 through "chunks/input_tile" [64],
    (w0, w1, w2, dy, x) -> (mut dx, dw),
    /// Shapes of the gradients of several products.
    struct BackwardParams {
        /// Number of rows of x and of each dy.
        n: usize,
        /// Number of columns of all dy, and of rows of all w, divided by 4.
        m4: usize,
        /// Number of columns of x and of each w, divided by 4.
        k4: usize,
        /// The same as `m4`, since dx is not summed in slices.
        slice4: usize,
        /// Number of workgroups that compute dx; the remaining ones compute dW.
        input: usize,
        /// 1 where dx holds a sum that the gradient is added to, else 0.
        add: bool,
        /// Number of columns of the first dy, and of rows of w0.
        m0: usize,
        /// Number of columns of the second dy, and of rows of w1.
        m1: usize,
    },
    twin |[w0, w1, w2, dy, x], [dx, dw], p| {
        let [n, m, m0, m1] = [p.n, 4 * p.m4, p.m0, p.m1];
        let (dy0, rest) = dy.split_at(n * m0);
        let (dy1, dy2) = rest.split_at(n * m1);
        backward_twin(&[(w0, dy0, m0), (w1, dy1, m1), (w2, dy2, m - m0 - m1)], x, [dx, dw], p);
    };

    /// [`BACKWARD_THREE_TILE`] by tiles of half the size.
    pub BACKWARD_THREE_TILE_SMALL = "linear_backward_three_tile_small" of three4 through "chunks/input_tile_small" as BACKWARD_THREE_TILE;
}
crate::kernel! {
    /// [`BACKWARD_THREE_TILE`] for two matrices, each dy in a buffer of its own.
    pub BACKWARD_TWO_TILE = "linear_backward_two_tile" of two4 through "chunks/input_tile" [64],
    (w0, w1, dy0, dy1, x) -> (mut dx, dw), BackwardParams,
    twin |[w0, w1, dy0, dy1, x], [dx, dw], p| {
        backward_twin(&[(w0, dy0, p.m0), (w1, dy1, 4 * p.m4 - p.m0)], x, [dx, dw], p);
    };

    /// [`BACKWARD_TWO_TILE`] by tiles of half the size.
    pub BACKWARD_TWO_TILE_SMALL = "linear_backward_two_tile_small" of two4 through "chunks/input_tile_small" as BACKWARD_TWO_TILE;
}

fn forward_twin([w0, w1, w2, x]: [&[u32]; 4], [y0, y1, y2]: [&mut [u32]; 3], p: &ForwardParams) {
    for (w, y, m) in [(w0, y0, p.m0), (w1, y1, p.m1), (w2, y2, p.m - p.m0 - p.m1)] {
        twins::forward([w, x], y, [p.n, m, 4 * p.k4], m);
    }
}

/// Computes dx and dW of `parts`: matrices, each with its dy and its number of rows.
fn backward_twin(
    parts: &[(&[u32], &[u32], usize)],
    x: &[u32],
    [dx, dw]: [&mut [u32]; 2],
    p: &BackwardParams,
) {
    let k = 4 * p.k4;
    let mut sums: Vec<f64> = dx
        .floats()
        .iter()
        .map(|&dx| if p.add { f64::from(dx) } else { 0.0 })
        .collect();
    let mut first = 0;
    for &(w, dy, m) in parts {
        for (at, sum) in sums.iter_mut().enumerate() {
            let products = (0..m).map(|c| dy.wide(at / k * m + c) * w.wide(c * k + at % k));
            *sum += products.sum::<f64>();
        }
        twins::backward_weight(
            [dy, x],
            &mut dw[first * k..][..m * k],
            [p.n, m, 4 * p.k4],
            false,
        );
        first += m;
    }
    dx.floats_mut()
        .iter_mut()
        .zip(sums)
        .for_each(|(dx, sum)| *dx = sum as f32);
}

/// Alignment of the parts of a buffer in bytes, which is enough on every device.
const ALIGNMENT: usize = 256;

/// Returns true if the products of x `[n, k]` with these matrices are computed together.
fn joined<B: Launch, const N: usize>(
    x: &FloatTensor<B>,
    ws: &[Weights<FloatTensor<B>>; N],
) -> bool {
    let ((n, k), storage) = (rows_columns(&x.shape()), ws[0].form.storage);
    let fits = |w: &Weights<_>| {
        let part = w.form.rows * k * DType::F32.size();
        w.form.storage == storage && w.form.rows.is_multiple_of(4) && part.is_multiple_of(ALIGNMENT)
    };
    let alike = matches!(storage, F32 | Bf16) && ws.iter().all(fits);
    // The one sum of products for dx must be no longer than that of a single matrix.
    let rows: usize = ws.iter().map(|w| w.form.rows).sum();
    !B::TWINS && tiled(B::software(x), n) && k.is_multiple_of(4) && alike && rows <= SLICE
}

/// Computes `y_p = x W_pᵀ`: `x [n, k]`, `W_p [m_p, k]` → `[n, m_p]` each.
pub fn forward<B: Launch, const N: usize>(
    x: FloatTensor<B>,
    ws: [Weights<FloatTensor<B>>; N],
) -> [FloatTensor<B>; N] {
    const { assert!(N == 2 || N == 3) }
    if !joined::<B, N>(&x, &ws) {
        return ws.map(|w| super::forward::<B>(x.clone(), w));
    }
    let ((n, k), storage) = (rows_columns(&x.shape()), ws[0].form.storage);
    // A binding cannot be omitted: with two matrices, those of the third one are bound and not used.
    let made = |m: usize| B::floats(&x, if m == 0 { [1, 4] } else { [n, m] });
    let m = ws.each_ref().map(|w| w.form.rows);
    let [m0, m1, m2] = [m[0], m[1], m.get(2).copied().unwrap_or(0)];
    let ys = [m0, m1, m2].map(made);
    let mut words = ws.into_iter().map(|w| w.words);
    let [w0, w1, w2] = [(); 3].map(|()| words.next().unwrap_or_else(|| made(0)));
    let m = m0 + m1 + m2;
    let params = ForwardParams {
        n,
        m,
        k4: k / 4,
        m0,
        m1,
    };
    let (tile, groups) = tiling(|tile| tile.of(n, m));
    let kernel = tile.choose(&FORWARD_TILE, &FORWARD_TILE_SMALL);
    let mut ys = B::launch(kernel.of(storage), [w0, w1, w2, x], ys, &params, groups).into_iter();
    [(); N].map(|()| ys.next().expect("an output for each matrix"))
}

/// The inputs of the gradients of `y_p = x W_pᵀ`.
#[derive(Debug, Clone)]
pub struct Joint<T, const N: usize> {
    /// Input rows `[n, k]`.
    pub x: T,
    /// Weights `[m_p, k]`, as they are stored.
    pub ws: [Weights<T>; N],
}

/// The gradient of x and those of the matrices, as far as they are needed.
pub type Gradients<T, const N: usize> = (Option<T>, [Option<T>; N]);

/// Returns true if [`three`] or [`two`] can compute all gradients in one dispatch.
pub fn joins<B: Launch, const N: usize>(of: &Joint<FloatTensor<B>, N>) -> bool {
    joined::<B, N>(&of.x, &of.ws)
}

/// Computes the gradients that are needed, of x and of each matrix, one by one; that of x is added to `sum`.
pub fn apart<B: Launch, const N: usize>(
    dys: [FloatTensor<B>; N],
    Joint { x, ws }: Joint<FloatTensor<B>, N>,
    (dx_needed, dws_needed): (bool, [bool; N]),
    mut sum: Option<FloatTensor<B>>,
) -> Gradients<FloatTensor<B>, N> {
    let mut parts = ws.into_iter().zip(dys).zip(dws_needed);
    let dws = [(); N].map(|()| {
        let ((w, dy), dw_needed) = parts.next()?;
        let (one, needs) = (Linear { x: x.clone(), w }, [dx_needed, dw_needed]);
        let [dx, dw] = gradients::<B, 2>(one, dy, needs, sum.take());
        sum = dx;
        dw
    });
    (sum, dws)
}

/// Computes all gradients of three products from `dy_p [n, m_p]` that lie one after another; dx is added to `sum`.
pub fn three<B: Launch>(
    dy: FloatTensor<B>,
    of: Joint<FloatTensor<B>, 3>,
    sum: Option<FloatTensor<B>>,
) -> Gradients<FloatTensor<B>, 3> {
    let kernels = [&BACKWARD_THREE_TILE, &BACKWARD_THREE_TILE_SMALL];
    together::<B, 3, 5>(of, sum, kernels, |[w0, w1, w2], x| [w0, w1, w2, dy, x])
}

/// Computes all gradients of two products from `dy_p [n, m_p]`; dx is added to `sum`.
pub fn two<B: Launch>(
    [dy0, dy1]: [FloatTensor<B>; 2],
    of: Joint<FloatTensor<B>, 2>,
    sum: Option<FloatTensor<B>>,
) -> Gradients<FloatTensor<B>, 2> {
    let kernels = [&BACKWARD_TWO_TILE, &BACKWARD_TWO_TILE_SMALL];
    together::<B, 2, 5>(of, sum, kernels, |[w0, w1], x| [w0, w1, dy0, dy1, x])
}

/// Computes all gradients by one of two kernels, for large tiles and for small ones. `read` orders the matrices, the dy_p and x as the kernels
/// read them.
fn together<B: Launch, const N: usize, const R: usize>(
    of: Joint<FloatTensor<B>, N>,
    sum: Option<FloatTensor<B>>,
    [large, small]: [&'static Stored<BackwardParams, R, 2, 2>; 2],
    read: impl FnOnce([FloatTensor<B>; N], FloatTensor<B>) -> [FloatTensor<B>; R],
) -> Gradients<FloatTensor<B>, N> {
    let storage = of.ws[0].form.storage;
    let shapes = of
        .ws
        .each_ref()
        .map(|w| Shape::from([w.form.rows, w.form.columns]));
    let (n, k) = rows_columns(&of.x.shape());
    let m: usize = of.ws.iter().map(|w| w.form.rows).sum();
    let (tile, groups) = tiling(|tile| tile.of(n, k) + tile.of(m, k));
    let params = BackwardParams {
        n,
        m4: m / 4,
        k4: k / 4,
        slice4: m / 4,
        input: tile.of(n, k) as usize,
        add: sum.is_some(),
        m0: of.ws[0].form.rows,
        m1: of.ws[1].form.rows,
    };
    let made = |rows: usize| B::floats(&of.x, [rows, k]);
    let outputs = [sum.unwrap_or_else(|| made(n)), made(m)];
    let read = read(of.ws.map(|w| w.words), of.x);
    let kernel = tile.choose(large, small).of(storage);
    let [dx, dw] = B::launch(kernel, read, outputs, &params, groups);
    (Some(dx), B::parts(dw, shapes).map(Some))
}
