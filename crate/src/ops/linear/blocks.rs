//! Products by large register blocks, for software adapters: 32 rows by 16 columns per thread. The gradients are products by the same kernel,
//! of factors that are transposed before, one part at a time: reading both factors along the sum takes the fewest loads, and one large kernel
//! takes the compiler of such an adapter a third of the time of three.

use std::ops::Range;

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;

use super::params::{BlockParams, TransposeParams};
use super::{SLICE, kernels};
use crate::gpu::launch::{Launch, rows_columns};
use crate::ops::weights::Weights;

/// Number of rows and of columns of a block.
const BLOCK: [usize; 2] = [32, 16];

/// Number of rows from which a block is no slower than blocks of 4 by 4, although it has more rows.
const LEAST_ROWS: usize = 16;

/// Number of threads from which blocks pay off; with fewer, blocks of 4 by 4 spread the work better.
const LEAST_THREADS: usize = 12;

/// Number of elements of a transposed part, except for wide matrices: 1 MiB.
const PART: usize = 1 << 18;

/// Minimum number of rows of a part of a wide matrix, which is larger for it: each part takes a pass over the sums.
const LEAST_OF_A_PART: usize = 128;

fn threads(rows: usize, columns: usize) -> usize {
    rows.div_ceil(BLOCK[0]) * columns.div_ceil(BLOCK[1])
}

/// Returns true if a product `[rows, columns]` of widths that are multiples of 4 is computed by large blocks.
pub(super) fn blocked(software: bool, rows: usize, columns: usize) -> bool {
    software && rows >= LEAST_ROWS && threads(rows, columns) >= LEAST_THREADS
}

/// Returns true if `dy [n, m] · w [m, k]` is computed by large blocks.
pub(super) fn blocked_input(software: bool, [n, m, k]: [usize; 3]) -> bool {
    m.is_multiple_of(4) && k.is_multiple_of(4) && blocked(software, n, k)
}

/// Returns true if the gradient of a matrix `[m, k]` is computed by large blocks.
pub(super) fn blocked_weight(software: bool, [m, k]: [usize; 2]) -> bool {
    m.is_multiple_of(4) && k.is_multiple_of(4) && blocked(software, m, k)
}

/// The place at which a product reads x and writes y.
struct Place {
    /// The rows of y, as many as x has.
    rows: Range<usize>,
    /// The first column of y, which has as many from there on as w has rows.
    first: usize,
    /// The first column of x.
    column: usize,
    /// True if y has sums that the product is added to.
    add: bool,
}

/// Computes `y[rows] (+)= x[.., column ..] wᵀ`.
fn product<B: Launch>(
    x: FloatTensor<B>,
    w: Weights<FloatTensor<B>>,
    y: FloatTensor<B>,
    at: &Place,
) -> FloatTensor<B> {
    let (n, m) = (at.rows.len(), w.form.rows);
    let [stride4, k4, first4] =
        [rows_columns(&x.shape()).1, w.form.columns, at.column].map(|width| width / 4);
    let params = BlockParams {
        n,
        m,
        k4,
        stride4,
        first4,
        first: at.rows.start,
        width: rows_columns(&y.shape()).1,
        column: at.first,
        add: at.add,
        plane: w.form.plane(),
    };
    let kernel = kernels::BLOCK.of(w.form.storage);
    let groups = kernel.groups(threads(n, m));
    let [y] = B::launch(kernel, [w.words, x], [y], &params, groups);
    y
}

/// The transposed part `[columns, rows]` of w in f32, each row filled up with zeros to a multiple of 4.
fn transposed<B: Launch>(
    w: &Weights<FloatTensor<B>>,
    rows: Range<usize>,
    columns: Range<usize>,
) -> Weights<FloatTensor<B>> {
    let shape = [columns.len(), rows.len().next_multiple_of(4)];
    let y = B::floats(&w.words, shape);
    Weights::of(transposed_into::<B>(y, 0, w, rows, columns))
}

/// Writes that part into the columns of y from `at`, a multiple of 4, on.
pub(super) fn transposed_into<B: Launch>(
    y: FloatTensor<B>,
    at: usize,
    w: &Weights<FloatTensor<B>>,
    rows: Range<usize>,
    columns: Range<usize>,
) -> FloatTensor<B> {
    let params = TransposeParams {
        n: rows.len(),
        m4: columns.len() / 4,
        k4: w.form.columns / 4,
        first: rows.start,
        first4: columns.start / 4,
        stride4: rows_columns(&y.shape()).1 / 4,
        at4: at / 4,
        plane: w.form.plane(),
    };
    let kernel = kernels::TRANSPOSE.of(w.form.storage);
    let groups = kernel.groups(rows.len().div_ceil(4) * columns.len() / 4);
    let [y] = B::launch(kernel, [w.words.clone()], [y], &params, groups);
    y
}

/// The number of rows of a part of a matrix with this number of columns, a multiple of 4.
fn rows_of_a_part(columns: usize) -> usize {
    (PART / columns / 4 * 4).clamp(LEAST_OF_A_PART, SLICE)
}

/// Cuts `length` rows of `columns` columns into parts.
pub(super) fn parts(length: usize, columns: usize) -> impl Iterator<Item = Range<usize>> {
    let rows = rows_of_a_part(columns);
    (0..length)
        .step_by(rows)
        .map(move |start| start..length.min(start + rows))
}

/// The number of columns that the first part of `[length, columns]` has when it is transposed; no other part has more.
fn longest(length: usize, columns: usize) -> usize {
    length.min(rows_of_a_part(columns)).next_multiple_of(4)
}

/// The number of values that [`backward_input`] of w `[m, k]` holds in addition to its result.
pub(super) fn input_work([m, k]: [usize; 2]) -> usize {
    longest(m, k) * k
}

/// The number of values that [`backward_weight`] of dy `[n, m]` and x `[n, k]` holds in addition to its result.
pub(super) fn weight_work([n, m, k]: [usize; 3]) -> usize {
    let part = longest(n, k);
    part * (k + longest(m, part))
}

/// Computes `x [n, k] · w [m, k]ᵀ → [n, m]`.
pub(super) fn forward<B: Launch>(x: FloatTensor<B>, w: Weights<FloatTensor<B>>) -> FloatTensor<B> {
    let y = B::floats(&x, [rows_columns(&x.shape()).0, w.form.rows]);
    forward_into::<B>(y, 0, x, w)
}

/// Computes that in the columns of y from `first` on.
pub(super) fn forward_into<B: Launch>(
    y: FloatTensor<B>,
    first: usize,
    x: FloatTensor<B>,
    w: Weights<FloatTensor<B>>,
) -> FloatTensor<B> {
    let at = Place {
        rows: 0..rows_columns(&x.shape()).0,
        first,
        column: 0,
        add: false,
    };
    product::<B>(x, w, y, &at)
}

/// Computes `dy [n, m] · w [m, k] → [n, k]`, added to `sum` if there is one.
pub(super) fn backward_input<B: Launch>(
    dy: FloatTensor<B>,
    w: &Weights<FloatTensor<B>>,
    sum: Option<FloatTensor<B>>,
) -> FloatTensor<B> {
    let (n, _) = rows_columns(&dy.shape());
    let [m, k] = [w.form.rows, w.form.columns];
    let mut add = sum.is_some();
    let mut dx = sum.unwrap_or_else(|| B::floats(&dy, [n, k]));
    for part in parts(m, k) {
        let wt = transposed::<B>(w, part.clone(), 0..k);
        dx = part_of_input::<B>(dx, dy.clone(), wt, part.start, add);
        add = true;
    }
    dx
}

/// Computes the part of [`backward_input`] that comes from dy's columns from `column` on and the transposed rows of w that belong to them, added to
/// `dx [n, k]` with `add`.
pub(super) fn part_of_input<B: Launch>(
    dx: FloatTensor<B>,
    dy: FloatTensor<B>,
    transposed: Weights<FloatTensor<B>>,
    column: usize,
    add: bool,
) -> FloatTensor<B> {
    let rows = 0..rows_columns(&dy.shape()).0;
    let at = Place {
        rows,
        first: 0,
        column,
        add,
    };
    product::<B>(dy, transposed, dx, &at)
}

/// Computes `dy [n, m]ᵀ · x [n, k] → [m, k]` of these columns of dy, added to `sum` if there is one.
pub(super) fn backward_weight<B: Launch>(
    dy: FloatTensor<B>,
    columns: &Range<usize>,
    x: FloatTensor<B>,
    sum: Option<FloatTensor<B>>,
) -> FloatTensor<B> {
    let (n, m) = (rows_columns(&dy.shape()).0, columns.len());
    let k = rows_columns(&x.shape()).1;
    let mut add = sum.is_some();
    let mut dw = sum.unwrap_or_else(|| B::floats(&x, [m, k]));
    let (dy, x) = (Weights::of(dy), Weights::of(x));
    for part in parts(n, k) {
        let xt = transposed::<B>(&x, part.clone(), 0..k);
        for rows in parts(m, part.len()) {
            let own = columns.start + rows.start..columns.start + rows.end;
            let dyt = transposed::<B>(&dy, part.clone(), own);
            let at = Place {
                rows,
                first: 0,
                column: 0,
                add,
            };
            dw = product::<B>(dyt.words, xt.clone(), dw, &at);
        }
        add = true;
    }
    dw
}
