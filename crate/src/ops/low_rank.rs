//! A product with a constant matrix and the low-rank part of an adapter (arXiv:2106.09685): `y = x Wᵀ + s·(d(x) Aᵀ) Bᵀ`, d the dropout.
//!
//! By tiles the low-rank part is r more products of each sum, in the same dispatch; so it is in the gradient of x. Elsewhere it takes dispatches
//! of its own. The choice depends on the shape and the device, never on how the matrix is stored.

use burn::backend::TensorMetadata;
use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;
use burn::tensor::{DType, Scalar};

use crate::gpu::launch::{Launch, rows_columns};
use crate::gpu::{Kernels, StorageType, StoredMatrix, Words};
use crate::ops::dropout::{Mask, masked};
use crate::ops::linear::work::{input_work_bytes, weight_work_bytes};
use crate::ops::linear::{self, SLICE};
use crate::ops::operation::operation;
use crate::ops::residual::{added, residual_add};
use crate::ops::tape::{Grads, Sum, Vjp, gradients};
use crate::ops::weights::Weights;

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[
    &FORWARD_TILE.all(),
    &FORWARD_TILE_SMALL.all(),
    &BACKWARD_TILE.all(),
    &BACKWARD_TILE_SMALL.all(),
];

crate::kernel! {
    /// Computes `y = x Wᵀ + s z Bᵀ` by tiles in workgroup memory, k and r multiples of 4.
    pub FORWARD_TILE = "low_rank_forward_tile" of weight4 through "chunks/forward_tile" [64], (w, x, z, factor) -> (y),
    /// Shapes and scale of a product and its low-rank part.
    struct ForwardParams {
        /// Number of rows of x, z and y.
        n: usize,
        /// Number of columns of y, and of rows of w and of the factor B.
        m: usize,
        /// Number of columns of x and w, divided by 4.
        k4: usize,
        /// Number of columns of z and of the factor, divided by 4.
        r4: usize,
        /// 1 where the factor is f32, 0 where it is packed bf16.
        wide: bool,
        /// s, the scale of the low-rank part.
        scale: f32,
        /// Index of the word at which the second plane of the weights begins.
        plane: usize,
    },
    twin |[w, x, z, factor], [y], p| {
        let [n, m, k, r] = [p.n, p.m, 4 * p.k4, 4 * p.r4];
        let (factor, read) = (factor_values(factor, p.wide), product(x.floats(), w.floats(), k));
        let low_rank = product(z.floats(), &factor, r);
        for at in 0..n * m {
            y.set(at, read(at / m, at % m) + f64::from(p.scale) * low_rank(at / m, at % m));
        }
    };

    /// [`FORWARD_TILE`] by tiles of half the size.
    pub FORWARD_TILE_SMALL = "low_rank_forward_tile_small" of weight4 through "chunks/forward_tile_small"
        text (crate::kernel!(@source "low_rank_forward_tile")) as FORWARD_TILE;
}

crate::kernel! {
    /// Computes `dx (+)= dy W + s dz A` by tiles in workgroup memory, m, k and r multiples of 4.
    pub BACKWARD_TILE = "low_rank_backward_tile" of weight4 through "chunks/input_tile" [64], (w, dy, dz, factor) -> (mut dx),
    /// Shapes and scale of the gradient of the product's input, in slices of dy's columns.
    struct BackwardParams {
        /// Number of rows of dx, dy and dz.
        n: usize,
        /// Number of columns of dy and of rows of w, divided by 4.
        m4: usize,
        /// Number of columns of dx, w and the factor A, divided by 4.
        k4: usize,
        /// Number of columns of dz and of rows of the factor, divided by 4.
        r4: usize,
        /// Number of columns of a slice, divided by 4.
        slice4: usize,
        /// 1 where dx holds a sum that the gradient is added to.
        add: bool,
        /// 1 where the factor is f32, 0 where it is packed bf16.
        wide: bool,
        /// s, the scale of the low-rank part.
        scale: f32,
        /// Index of the word at which the second plane of the weights begins.
        plane: usize,
    },
    twin |[w, dy, dz, factor], [dx], p| {
        let [n, m, k, r, slice] = [p.n, 4 * p.m4, 4 * p.k4, 4 * p.r4, 4 * p.slice4];
        let factor = factor_values(factor, p.wide);
        for (s, from) in (0..m).step_by(slice).enumerate() {
            for at in 0..n * k {
                let (row, i) = (at / k, at % k);
                let products = (from..m.min(from + slice)).map(|c| dy.wide(row * m + c) * w.wide(c * k + i));
                let mut sum: f64 = products.sum();
                if s == 0 {
                    let products = (0..r).map(|j| dz.wide(row * r + j) * f64::from(factor[j * k + i]));
                    sum += f64::from(p.scale) * products.sum::<f64>();
                }
                let dx = &mut dx.floats_mut()[s * n * k + at];
                *dx = (if p.add { f64::from(*dx) } else { 0.0 } + sum) as f32;
            }
        }
    };

    /// [`BACKWARD_TILE`] by tiles of half the size.
    pub BACKWARD_TILE_SMALL = "low_rank_backward_tile_small" of weight4 through "chunks/input_tile_small"
        text (crate::kernel!(@source "low_rank_backward_tile")) as BACKWARD_TILE;
}

/// Decodes a factor, f32 or packed bf16.
fn factor_values(words: &[u32], wide: bool) -> Vec<f32> {
    let storage = if wide {
        StorageType::F32
    } else {
        StorageType::Bf16
    };
    storage
        .decode(words)
        .into_iter()
        .map(f32::from_bits)
        .collect()
}

/// The function `(row, column) → Σ_i x[row, i] w[column, i]`, a sum of k products.
fn product<'a>(x: &'a [f32], w: &'a [f32], k: usize) -> impl Fn(usize, usize) -> f64 + 'a {
    move |row, column| {
        (0..k)
            .map(|i| f64::from(x[row * k + i]) * f64::from(w[column * k + i]))
            .sum()
    }
}

/// The description of a matrix with the factors of an adapter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adapted {
    /// Storage type and shape of the matrix.
    pub form: StoredMatrix,
    /// True if the matrix is `[k, m]`, as in GPT-2's files, instead of `[m, k]`.
    pub conv1d: bool,
    /// s, the scale of the low-rank part.
    pub scale: f32,
    /// The dropout of the factors' inputs, if there is one.
    pub mask: Option<Mask>,
}

/// The inputs of the gradients of `y = x Wᵀ + s·(d(x) Aᵀ) Bᵀ`.
#[derive(Debug, Clone)]
pub struct LowRank<T> {
    /// Input rows `[n, k]`.
    pub x: T,
    /// The words of W.
    pub words: T,
    /// `d(x) Aᵀ [n, r]`.
    pub z: T,
    /// A `[r, k]`, f32 or packed bf16.
    pub a: T,
    /// B `[m, r]`, f32 or packed bf16.
    pub b: T,
    /// The description of W and its factors.
    pub adapted: Adapted,
}

impl<T: TensorMetadata> LowRank<T> {
    /// Returns true if the low-rank part is computed in the sums of the large product.
    fn fused<B: Launch<FloatTensorPrimitive = T>>(&self) -> bool {
        let Adapted {
            form, conv1d, mask, ..
        } = self.adapted;
        let (n, r) = rows_columns(&self.z.shape());
        !B::TWINS
            && !conv1d
            && mask.is_none()
            && fuses(B::software(&self.x), n, [form.rows, form.columns, r])
    }

    fn weights(&self) -> Weights<T> {
        Weights {
            words: self.words.clone(),
            form: self.adapted.form,
        }
    }
}

/// Returns true if tiles compute a product of n rows and these widths m, k and r, without dropout and not in GPT-2's layout.
fn fuses(software: bool, n: usize, widths: [usize; 3]) -> bool {
    widths.iter().all(|width| width.is_multiple_of(4)) && linear::tiled(software, n)
}

/// The maximum number of bytes that the gradients of y `[n, m]` take in addition to dy and to the tensors that the forward pass has kept, on
/// a software adapter or a GPU. `plain` is a product without dropout and not in GPT-2's layout.
pub(crate) fn work_bytes(software: bool, plain: bool, [n, m, k, r]: [usize; 4]) -> u64 {
    let [factors, dx] = [r * (m + k), n * k].map(|values| 4 * values as u64);
    let of_input = input_work_bytes(software, [n, m, k]);
    if plain && fuses(software, n, [m, k, r]) {
        // The gradient of A comes first, after which x is gone.
        return factors + of_input;
    }
    dx + of_input.max(factors + weight_work_bytes(software, [n, r, k]))
}

/// Computes `x [n, k] · Wᵀ + s·z·Bᵀ → [n, m]`, with `z [n, r]` and B `[m, r]`.
pub fn forward<B: Launch>(of: &LowRank<FloatTensor<B>>) -> FloatTensor<B> {
    let Adapted {
        form,
        conv1d,
        scale,
        ..
    } = of.adapted;
    let (n, r) = rows_columns(&of.z.shape());
    if !of.fused::<B>() {
        let y = linear::product::<B>(of.x.clone(), of.weights(), conv1d);
        return residual_add::<B>(
            y,
            linear::forward::<B>(scaled::<B>(of.z.clone(), scale), Weights::of(of.b.clone())),
        );
    }
    let params = ForwardParams {
        n,
        m: form.rows,
        k4: form.columns / 4,
        r4: r / 4,
        wide: of.b.dtype() == DType::F32,
        scale,
        plane: form.plane(),
    };
    let y = B::floats(&of.x, [n, form.rows]);
    let read = [of.words.clone(), of.x.clone(), of.z.clone(), of.b.clone()];
    let (size, groups) = linear::tiling(|tiles| tiles.of(n, form.rows));
    let kernel = size.choose(&FORWARD_TILE, &FORWARD_TILE_SMALL);
    let [y] = B::launch(kernel.of(form.storage), read, [y], &params, groups);
    y
}

fn scaled<B: Launch>(x: FloatTensor<B>, scale: f32) -> FloatTensor<B> {
    if scale.to_bits() == 1f32.to_bits() {
        x
    } else {
        <B as FloatTensorOps<B>>::float_mul_scalar(x, Scalar::from(scale))
    }
}

/// Computes the gradients of x, A and B by tiles; that of x is added to `sum`.
fn by_tiles<B: Launch>(
    of: LowRank<FloatTensor<B>>,
    dy: FloatTensor<B>,
    needs: [bool; 3],
    sum: Option<FloatTensor<B>>,
) -> Grads<B, 3> {
    let Adapted { form, scale, .. } = of.adapted;
    let ((n, r), k) = (rows_columns(&of.z.shape()), form.columns);
    let [dz, db] = linear::by_tiles::<B>(
        dy.clone(),
        needs[2].then_some(of.z),
        Some(Weights::of(of.b)),
        [form.rows, r],
        scale,
        [None, None],
    );
    let dz = linear::whole::<B>(dz, [n, r]);
    let da = needs[1].then(|| {
        let [_, da] =
            linear::by_tiles::<B>(dz.clone(), Some(of.x), None, [r, k], scale, [None, None]);
        da
    });
    let dx = needs[0].then(|| {
        let slices = form.rows.div_ceil(SLICE).max(1);
        let (begun, later) = if slices == 1 {
            (sum, None)
        } else {
            (None, sum)
        };
        let params = BackwardParams {
            n,
            m4: form.rows / 4,
            k4: k / 4,
            r4: r / 4,
            slice4: SLICE / 4,
            add: begun.is_some(),
            wide: of.a.dtype() == DType::F32,
            scale,
            plane: form.plane(),
        };
        let dx = begun.unwrap_or_else(|| B::floats(&dy, [slices, n * k]));
        let (size, groups) = linear::tiling(|tiles| slices as u32 * tiles.of(n, k));
        let kernel = size.choose(&BACKWARD_TILE, &BACKWARD_TILE_SMALL);
        let [dx] = B::launch(
            kernel.of(form.storage),
            [of.words, dy, dz, of.a],
            [dx],
            &params,
            groups,
        );
        added::<B>(linear::whole::<B>(dx, [n, k]), later)
    });
    [dx, da, needs[2].then_some(db)]
}

/// Computes the gradients of x, A and B by a product for each part; that of x is added to `sum`.
fn by_parts<B: Launch>(
    of: LowRank<FloatTensor<B>>,
    dy: FloatTensor<B>,
    needs: [bool; 3],
    sum: Option<FloatTensor<B>>,
) -> Grads<B, 3> {
    let (
        w,
        Adapted {
            conv1d,
            scale,
            mask,
            ..
        },
    ) = (of.weights(), of.adapted);
    let LowRank { x, z, a, b, .. } = of;
    let up = linear::Linear {
        x: scaled::<B>(z, scale),
        w: Weights::of(b),
    };
    let [dz, db] = gradients::<B, 2>(up, dy.clone(), [true, needs[2]], None);
    let dz = scaled::<B>(dz.expect("it was asked for"), scale);
    let x = mask.into_iter().fold(x, masked::<B>);
    let down = linear::Linear {
        x,
        w: Weights::of(a),
    };
    if !needs[0] {
        let [_, da] = gradients::<B, 2>(down, dz, [false, needs[1]], None);
        return [None, da, db];
    }
    let dx = added::<B>(linear::product::<B>(dy, w, !conv1d), sum);
    let [dx, da] = match mask {
        None => gradients::<B, 2>(down, dz, [true, needs[1]], Some(dx)),
        Some(mask) => {
            let [dropped, da] = gradients::<B, 2>(down, dz, [true, needs[1]], None);
            [
                dropped.map(|dropped| residual_add::<B>(dx, masked::<B>(dropped, mask))),
                da,
            ]
        }
    };
    [dx, da, db]
}

impl<B: Launch> Vjp<B, 3> for LowRank<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, needs: [bool; 3], sum: Sum<'_, B>) -> Grads<B, 3> {
        if self.fused::<B>() {
            by_tiles::<B>(self, dy, needs, sum.take())
        } else {
            by_parts::<B>(self, dy, needs, sum.take())
        }
    }
}

operation! {
    /// Computes `x [n, k] · Wᵀ + s·z·Bᵀ → [n, m]` by the words of a constant matrix W, which `adapted` describes, and the factors `a [r, k]`, `b [m, r]`
    /// of an adapter (f32 or packed bf16). `z [n, r]` is `d(x)·Aᵀ` with the dropout d of `adapted`, computed before and not recorded: the gradients
    /// of x and A, which pass through it, are computed here.
    pub fn low_rank(x: Tensor<2>, words: Tensor<1>, z: Tensor<2>, a: Tensor<2>, b: Tensor<2>; adapted: Adapted) -> Tensor<2> {
        let ([x, a, b], nodes) = B::parts([x, a, b]);
        let vjp = LowRank { x, words: B::constant(words), z: B::constant(z), a, b, adapted };
        B::record(nodes, forward::<B::Inner>(&vjp), vjp)
    }
}
