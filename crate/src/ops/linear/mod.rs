//! Linear layers: `y = x Wᵀ`, with weights `[m, k]` of any storage type and sums in f32.
//!
//! Each product chooses a kernel by its shape and by whether the adapter is a CPU. For many rows and widths that are multiples of 4 it is a
//! register block of 32 by 16 on software adapters (blocks.rs), and tiles in workgroup memory on GPUs. For fewer rows it is blocks of 4 by 4, for
//! one or two rows `linear_row`, and for other widths the `_any` kernels. Both gradients share one dispatch if tiles compute them. On the CPU
//! Burn's matmul is used instead of the twins, which remain the definition.

mod blocks;
pub mod joint;
pub mod kernels;
mod operations;
pub mod params;
pub mod parts;
mod tiles;
mod twins;
pub mod work;

use std::ops::Range;

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::{DType, Slice};

use crate::gpu::launch::{Launch, rows_columns};
use crate::gpu::{StorageType, StoredMatrix};
use crate::ops::column_sum::column_sum;
use crate::ops::embedding;
use crate::ops::residual::added;
use crate::ops::tape::{Grads, Sum, Vjp};
use crate::ops::weights::Weights;
use blocks::{blocked, blocked_input, blocked_weight};
pub(super) use operations::product_of_words;
pub use operations::{conv1d, linear};
use params::{
    AnyInputParams, AnyParams, AnyWeightParams, BackwardParams, ForwardParams, ForwardTileParams,
    InputParams,
};
pub(super) use tiles::{by_tiles, tiled, tiling};

/// Maximum number of rows for which `linear_row` is used: a register block would compute rows twice.
const FEW_ROWS: usize = 2;

/// Number of outputs of a workgroup of `linear_row`.
const ROW_OUTPUTS: usize = 8;

/// Maximum number of products that `dx = dy W` sums in one thread, a multiple of 4. A vocabulary is longer: rounding errors would
/// grow with it, its dispatch would take long, and Mesa's lavapipe ends a thread's loops after 65,535 rounds in all.
pub(crate) const SLICE: usize = 4096;

/// Number of rows and of columns of the register block for any width.
const ANY_BLOCK: [usize; 2] = [16, 8];

/// Number of threads from which this block pays off; with fewer, the 4 by 4 block spreads the work better.
const ANY_BLOCK_THREADS: usize = 24;

/// The number of threads for a product `[rows, columns]` of any width by these blocks, if they pay off.
fn any_block_threads(software: bool, rows: usize, columns: usize) -> Option<usize> {
    let threads = rows.div_ceil(ANY_BLOCK[0]) * columns.div_ceil(ANY_BLOCK[1]);
    (software && rows >= ANY_BLOCK[0] - 4 && threads >= ANY_BLOCK_THREADS).then_some(threads)
}

/// Sums slices `[slices, n·k]`, of which there may be only one, to `[n, k]`.
pub(super) fn whole<B: Launch>(dx: FloatTensor<B>, [n, k]: [usize; 2]) -> FloatTensor<B> {
    let one = dx.shape().num_elements() == n * k;
    B::float_reshape(if one { dx } else { column_sum::<B>(dx) }, [n, k].into())
}

/// Computes `x [n, k] · w [m, k]ᵀ → [n, m]`.
pub fn forward<B: Launch>(x: FloatTensor<B>, w: Weights<FloatTensor<B>>) -> FloatTensor<B> {
    let m = w.form.rows;
    strided::<B>(x, w, m)
}

/// Computes [`forward`] in the columns of `y [n, stride]` from `first` on.
fn forward_into<B: Launch>(
    y: FloatTensor<B>,
    first: usize,
    x: FloatTensor<B>,
    w: Weights<FloatTensor<B>>,
) -> FloatTensor<B> {
    let ((n, k), m) = (rows_columns(&x.shape()), w.form.rows);
    let params = ForwardTileParams {
        n,
        m,
        k4: k / 4,
        stride: rows_columns(&y.shape()).1,
        first,
        plane: w.form.plane(),
    };
    let (tile, groups) = tiling(|tile| tile.of(n, m));
    let kernel = tile.choose(&kernels::FORWARD_TILE, &kernels::FORWARD_TILE_SMALL);
    let [y] = B::launch(
        kernel.of(w.form.storage),
        [w.words, x],
        [y],
        &params,
        groups,
    );
    y
}

/// Computes [`forward`] for readers that accept longer rows, such as [`backward_input`] and [`backward_weight`]: where tiles would compute their
/// products if m were a multiple of 4, rows are as long as the next multiple, and their elements beyond m are not written.
pub fn padded<B: Launch>(x: FloatTensor<B>, w: Weights<FloatTensor<B>>) -> FloatTensor<B> {
    let ((n, k), m) = (rows_columns(&x.shape()), w.form.rows);
    let pads = !B::TWINS && tiled(B::software(&x), n) && k % 4 == 0;
    strided::<B>(x, w, if pads { m.next_multiple_of(4) } else { m })
}

/// Computes `x [n, k] · w [m, k]ᵀ → [n, stride]`. Only by tiles may the stride be more than m.
fn strided<B: Launch>(
    x: FloatTensor<B>,
    w: Weights<FloatTensor<B>>,
    stride: usize,
) -> FloatTensor<B> {
    let ((n, k), m) = (rows_columns(&x.shape()), w.form.rows);
    if B::TWINS {
        return B::float_matmul(x, B::float_transpose(widened::<B>(w)));
    }
    let software = B::software(&x);
    if k % 4 == 0 && blocked(software, n, m) {
        return blocks::forward::<B>(x, w);
    }
    if k % 4 == 0 && tiled(software, n) {
        let y = B::floats(&x, [n, stride]);
        return forward_into::<B>(y, 0, x, w);
    }
    let (storage, plane, w) = (w.form.storage, w.form.plane(), w.words);
    let small = n.div_ceil(4) * m.div_ceil(4);
    if k % 4 != 0 {
        let params = AnyParams { n, m, k, plane };
        let (kernel, threads) = match any_block_threads(software, n, m) {
            Some(threads) => (&kernels::FORWARD_ANY_BLOCK, threads),
            None => (&kernels::FORWARD_ANY, small),
        };
        return B::made(kernel.of(storage), [w, x], [n, m], &params, threads);
    }
    let k4 = k / 4;
    let params = ForwardParams { n, m, k4, plane };
    let (kernel, threads) = if n <= FEW_ROWS {
        let group = kernels::ROW.of(storage).any().workgroup as usize;
        (&kernels::ROW, n * m.div_ceil(ROW_OUTPUTS) * group)
    } else {
        (&kernels::FORWARD, small)
    };
    B::made(kernel.of(storage), [w, x], [n, m], &params, threads)
}

/// Computes `dy [n, m] · w [m, k] → [n, k]`; rows of dy may be [`padded`].
pub fn backward_input<B: Launch>(dy: FloatTensor<B>, w: Weights<FloatTensor<B>>) -> FloatTensor<B> {
    backward_input_onto::<B>(dy, w, None)
}

/// Computes [`forward`], or [`backward_input`] for weights in the layout of GPT-2's Conv1D.
pub fn product<B: Launch>(
    x: FloatTensor<B>,
    w: Weights<FloatTensor<B>>,
    conv1d: bool,
) -> FloatTensor<B> {
    if conv1d {
        backward_input::<B>(x, w)
    } else {
        forward::<B>(x, w)
    }
}

/// Computes [`backward_input`], added to `sum` if there is one.
pub(crate) fn backward_input_onto<B: Launch>(
    dy: FloatTensor<B>,
    w: Weights<FloatTensor<B>>,
    sum: Option<FloatTensor<B>>,
) -> FloatTensor<B> {
    let (n, [m, k]) = (rows_columns(&dy.shape()).0, [w.form.rows, w.form.columns]);
    let software = B::software(&dy);
    if !B::TWINS && blocked_input(software, [n, m, k]) {
        return blocks::backward_input::<B>(dy, &w, sum);
    }
    if sum.is_some() {
        return added::<B>(backward_input::<B>(dy, w), sum);
    }
    let all = 0..rows_columns(&dy.shape()).1;
    whole::<B>(slices_of_input::<B>(dy, &all, w, m), [n, k])
}

/// Computes the sums of [`backward_input`] over slices of these columns of dy → `[slices, n·k]`. `of` is the number of rows of the matrix of which w
/// may be a part: it chooses the kernel.
fn slices_of_input<B: Launch>(
    dy: FloatTensor<B>,
    columns: &Range<usize>,
    w: Weights<FloatTensor<B>>,
    of: usize,
) -> FloatTensor<B> {
    let ((n, stride), [m, k]) = (rows_columns(&dy.shape()), [w.form.rows, w.form.columns]);
    let slices = m.div_ceil(SLICE).max(1);
    if !B::TWINS && tiled(B::software(&dy), n) && stride % 4 == 0 && k % 4 == 0 {
        let none = [None, None];
        let [dx, _] = tiles::by_tiles_of::<B>(dy, columns, None, Some(w), [m, k], 1.0, none);
        return B::float_reshape(dx, [slices, n * k].into());
    }
    let dy = columns_of::<B>(dy, columns);
    if B::TWINS {
        let dx = B::float_matmul(dy, widened::<B>(w));
        return B::float_reshape(dx, [1, n * k].into());
    }
    let software = B::software(&dy);
    let (storage, plane, shape) = (w.form.storage, w.form.plane(), [slices, n * k]);
    let (read, small) = ([w.words, dy], n.div_ceil(4) * k.div_ceil(4));
    if !of.is_multiple_of(4) || !k.is_multiple_of(4) {
        let params = AnyInputParams {
            n,
            m,
            k,
            slice: SLICE,
            plane,
        };
        let (kernel, threads) = match any_block_threads(software, n, k) {
            Some(threads) => (&kernels::BACKWARD_INPUT_ANY_BLOCK, threads),
            None => (&kernels::BACKWARD_INPUT_ANY, small),
        };
        B::made(kernel.of(storage), read, shape, &params, slices * threads)
    } else {
        let params = InputParams {
            n,
            m4: m / 4,
            k4: k / 4,
            slice4: SLICE / 4,
            plane,
        };
        let kernel = kernels::BACKWARD_INPUT.of(storage);
        B::made(kernel, read, shape, &params, slices * small)
    }
}

/// Computes `dy [n, m]ᵀ · x [n, k] → [m, k]`, in f32 whatever the weights are, added to `sum` if there is one; rows of dy may be [`padded`].
pub fn backward_weight<B: Launch>(
    dy: FloatTensor<B>,
    x: FloatTensor<B>,
    m: usize,
    sum: Option<FloatTensor<B>>,
) -> FloatTensor<B> {
    let all = 0..rows_columns(&dy.shape()).1;
    backward_part::<B>(dy, &all, x, [m, m], sum)
}

/// Computes [`backward_weight`] of `m` rows of a matrix of `of` rows, which choose the kernel, from these columns of dy.
fn backward_part<B: Launch>(
    dy: FloatTensor<B>,
    columns: &Range<usize>,
    x: FloatTensor<B>,
    [m, of]: [usize; 2],
    sum: Option<FloatTensor<B>>,
) -> FloatTensor<B> {
    let ((n, stride), (_, k)) = (rows_columns(&dy.shape()), rows_columns(&x.shape()));
    let software = B::software(&dy);
    if !B::TWINS && tiled(software, n) && stride % 4 == 0 && k % 4 == 0 {
        let sums = [None, sum];
        let [_, dw] = tiles::by_tiles_of::<B>(dy, columns, Some(x), None, [m, k], 1.0, sums);
        return dw;
    }
    if !B::TWINS && blocked_weight(software, [of, k]) {
        return blocks::backward_weight::<B>(dy, columns, x, sum);
    }
    let dy = columns_of::<B>(dy, columns);
    if B::TWINS {
        return added::<B>(B::float_matmul(B::float_transpose(dy), x), sum);
    }
    let add = sum.is_some();
    let dw = sum.unwrap_or_else(|| B::floats(&x, [m, k]));
    let small = m.div_ceil(4) * k.div_ceil(4);
    let [dw] = if !of.is_multiple_of(4) || !k.is_multiple_of(4) {
        let params = AnyWeightParams { n, m, k, add };
        let (kernel, threads) = match any_block_threads(software, m, k) {
            Some(threads) => (&kernels::BACKWARD_WEIGHT_ANY_BLOCK, threads),
            None => (&kernels::BACKWARD_WEIGHT_ANY, small),
        };
        B::launch(kernel, [dy, x], [dw], &params, kernel.groups(threads))
    } else {
        let params = BackwardParams {
            n,
            m4: m / 4,
            k4: k / 4,
            add,
        };
        let kernel = &kernels::BACKWARD_WEIGHT;
        B::launch(kernel, [dy, x], [dw], &params, kernel.groups(small))
    };
    dw
}

/// These columns of dy, which are copied if there are others.
fn columns_of<B: Launch>(dy: FloatTensor<B>, columns: &Range<usize>) -> FloatTensor<B> {
    let (n, stride) = rows_columns(&dy.shape());
    if columns.len() == stride {
        return dy;
    }
    B::float_slice(dy, &[Slice::from(0..n), Slice::from(columns.clone())])
}

/// Returns true if [`both`] takes the shape.
fn fits<B: Launch>(dy: &FloatTensor<B>, vjp: &Linear<FloatTensor<B>>) -> bool {
    let ((n, m), k) = (rows_columns(&dy.shape()), vjp.w.form.columns);
    !B::TWINS && m % 4 == 0 && k % 4 == 0 && m <= SLICE && tiled(B::software(dy), n)
}

/// Computes both gradients of `y = x Wᵀ` in one dispatch by tiles, dx added to `sum` if there is one.
fn both<B: Launch>(
    dy: FloatTensor<B>,
    vjp: Linear<FloatTensor<B>>,
    sum: Option<FloatTensor<B>>,
) -> [FloatTensor<B>; 2] {
    let ((n, m), k) = (rows_columns(&dy.shape()), vjp.w.form.columns);
    let [dx, dw] = by_tiles::<B>(dy, Some(vjp.x), Some(vjp.w), [m, k], 1.0, [sum, None]);
    [B::float_reshape(dx, [n, k].into()), dw]
}

/// The weights in f32 `[rows, columns]`, for the CPU only.
fn widened<B: Launch>(w: Weights<FloatTensor<B>>) -> FloatTensor<B> {
    let StoredMatrix {
        storage,
        rows,
        columns,
    } = w.form;
    let values = match (w.words.dtype(), storage) {
        (DType::BF16, _) => B::float_cast(w.words, burn::tensor::FloatDType::F32),
        (_, StorageType::F32) => w.words,
        _ => embedding::decoded::<B>(w),
    };
    B::float_reshape(values, [rows, columns].into())
}

/// The backward pass of `y = x Wᵀ`.
#[derive(Debug, Clone)]
pub struct Linear<T> {
    /// Input rows `[n, k]`.
    pub x: T,
    /// Weights, as they are stored.
    pub w: Weights<T>,
}

impl<B: Launch> Vjp<B, 2> for Linear<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, needs: [bool; 2], sum: Sum<'_, B>) -> Grads<B, 2> {
        if needs == [true; 2] && fits::<B>(&dy, &self) {
            return both::<B>(dy, self, sum.take()).map(Some);
        }
        let m = self.w.form.rows;
        let dx = needs[0].then(|| backward_input_onto::<B>(dy.clone(), self.w, sum.take()));
        let dw = needs[1].then(|| backward_weight::<B>(dy, self.x, m, None));
        [dx, dw]
    }
}

/// The backward pass of `y = x W`, with weights `[k, m]` (GPT-2's Conv1D): the same kernels in other roles.
#[derive(Debug, Clone)]
pub struct Conv1d<T> {
    /// Input rows `[n, k]`.
    pub x: T,
    /// Weights, as they are stored.
    pub w: Weights<T>,
}

impl<B: Launch> Vjp<B, 2> for Conv1d<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, needs: [bool; 2], _: Sum<'_, B>) -> Grads<B, 2> {
        let k = self.w.form.rows;
        let dx = needs[0].then(|| forward::<B>(dy.clone(), self.w));
        let dw = needs[1].then(|| backward_weight::<B>(self.x, dy, k, None));
        [dx, dw]
    }
}

/// The backward pass of [`product`] with constant weights: the gradient of the input alone.
#[derive(Debug, Clone)]
pub struct Frozen<T> {
    /// Weights, as they are stored.
    pub w: Weights<T>,
    /// True for the layout of GPT-2's Conv1D.
    pub conv1d: bool,
}

impl<B: Launch> Vjp<B, 1> for Frozen<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, _needs: [bool; 1], sum: Sum<'_, B>) -> Grads<B, 1> {
        [Some(if self.conv1d {
            forward::<B>(dy, self.w)
        } else {
            backward_input_onto::<B>(dy, self.w, sum.take())
        })]
    }
}
