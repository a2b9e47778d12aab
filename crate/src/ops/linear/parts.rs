//! Products with a matrix that lies in parts: several tensors of [`UNIT`] rows or a multiple, since a kernel cannot bind them as one. Each result has
//! the bits of the product with the whole matrix, because each sum has the same order. Not differentiable: the caller records the gradients.

use std::ops::Range;

use burn::backend::DispatchDevice;
use burn::tensor::{Device, Tensor};

use super::blocks::{self, blocked, blocked_input, part_of_input, parts, transposed_into};
use super::{
    Linear, SLICE, backward_input_onto, backward_part, padded, slices_of_input, tiled, whole,
};
use crate::gpu::StoredMatrix;
use crate::gpu::launch::is_software;
use crate::ops::operation::operation;
use crate::ops::packed::PackedMatrix;
use crate::ops::tape::gradients;
use crate::ops::weights::Weights;

/// The number of rows of each part is a multiple of this, except that the last part has the rest of them too: the slices by which `dx = dy W` is
/// summed end with parts.
pub const UNIT: usize = SLICE;

/// Cuts a matrix of `rows` rows into the fewest parts that `fits` accepts, by their number of rows; `None` if it accepts none. Parts differ by
/// at most two units.
///
/// ```
/// use tabtune::ops::linear::parts::row_parts;
///
/// assert_eq!(row_parts(50_257, &|rows| rows <= 20_000), Some(vec![16_384, 16_384, 17_489]));
/// assert_eq!(row_parts(50_257, &|rows| rows <= 4_000), None);
/// ```
pub fn row_parts(rows: usize, fits: &dyn Fn(usize) -> bool) -> Option<Vec<usize>> {
    let units = (rows / UNIT).max(1);
    let cut = |parts: usize| {
        let (each, more) = (units / parts, units % parts);
        let mut lengths: Vec<usize> = (0..parts)
            .map(|part| UNIT * (each + usize::from(part < more)))
            .collect();
        let before: usize = lengths[..parts - 1].iter().sum();
        lengths[parts - 1] = rows - before;
        lengths
    };
    (1..=units)
        .map(cut)
        .find(|lengths| lengths.iter().all(|&rows| fits(rows)))
}

operation! {
    /// Computes `x [n, k] · w [m, k]ᵀ` in rows that may be longer than m.
    fn padded_product(x: Tensor<2>, words: Tensor<1>; form: StoredMatrix) -> Tensor<2> {
        B::untracked(padded::<B::Inner>(B::constant(x), Weights { words: B::constant(words), form }))
    }
}

operation! {
    /// Computes `dy [n, m] · w [m, k] → [n, k]`.
    fn input_of_whole(dy: Tensor<2>, words: Tensor<1>; form: StoredMatrix) -> Tensor<2> {
        let w = Weights { words: B::constant(words), form };
        B::untracked(backward_input_onto::<B::Inner>(B::constant(dy), w, None))
    }
}

operation! {
    /// Computes it in the columns of `y [n, _]` from `first` on, where tiles or large blocks compute it.
    fn product_into(y: Tensor<2>, x: Tensor<2>, words: Tensor<1>; form: StoredMatrix, first: usize, by_tiles: bool) -> Tensor<2> {
        let (y, x, w) = (B::constant(y), B::constant(x), Weights { words: B::constant(words), form });
        B::untracked(match by_tiles {
            true => super::forward_into::<B::Inner>(y, first, x, w),
            false => blocks::forward_into::<B::Inner>(y, first, x, w),
        })
    }
}

operation! {
    /// Computes its sums over slices of these columns of dy → `[slices, n·k]`, for a part of a matrix of `of` rows.
    fn slices_of_part(dy: Tensor<2>, words: Tensor<1>; columns: Range<usize>, form: StoredMatrix, of: usize) -> Tensor<2> {
        let w = Weights { words: B::constant(words), form };
        B::untracked(slices_of_input::<B::Inner>(B::constant(dy), &columns, w, of))
    }
}

operation! {
    /// Adds slices `[slices, n·k] → [n, k]`.
    fn sum_of_slices(slices: Tensor<2>; n: usize, k: usize) -> Tensor<2> {
        B::untracked(whole::<B::Inner>(B::constant(slices), [n, k]))
    }
}

operation! {
    /// Writes `rows` rows of a matrix from `first` on, transposed, into the columns of `y [k, _]` from `at` on.
    fn transposed_part(y: Tensor<2>, words: Tensor<1>; form: StoredMatrix, first: usize, rows: usize, at: usize) -> Tensor<2> {
        let w = Weights { words: B::constant(words), form };
        B::untracked(transposed_into::<B::Inner>(B::constant(y), at, &w, first..first + rows, 0..form.columns))
    }
}

operation! {
    /// Computes the part of `dx [n, k]` that comes from dy's columns from `column` on and `transposed [k, _]`, added to dx with `add`.
    fn input_of_columns(dx: Tensor<2>, dy: Tensor<2>, transposed: Tensor<2>; column: usize, add: bool) -> Tensor<2> {
        let transposed = Weights::of(B::constant(transposed));
        B::untracked(part_of_input::<B::Inner>(B::constant(dx), B::constant(dy), transposed, column, add))
    }
}

operation! {
    /// Computes `dy [n, m]ᵀ · x [n, k] → [m, k]` of these columns of dy, m rows of a matrix of `of` rows.
    fn weight_of_part(dy: Tensor<2>, x: Tensor<2>; columns: Range<usize>, m: usize, of: usize) -> Tensor<2> {
        B::untracked(backward_part::<B::Inner>(B::constant(dy), &columns, B::constant(x), [m, of], None))
    }
}

operation! {
    /// Adds it to `sum`.
    fn weight_of_part_onto(sum: Tensor<2>, dy: Tensor<2>, x: Tensor<2>; columns: Range<usize>, m: usize, of: usize) -> Tensor<2> {
        let (dy, x, sum) = (B::constant(dy), B::constant(x), B::constant(sum));
        B::untracked(backward_part::<B::Inner>(dy, &columns, x, [m, of], Some(sum)))
    }
}

operation! {
    /// Computes both gradients of `y = x wᵀ`, in one dispatch where the matrix is small.
    fn both_of_whole(dy: Tensor<2>, x: Tensor<2>, words: Tensor<1>; form: StoredMatrix) -> (Tensor<2>, Tensor<2>) {
        let vjp = Linear { x: B::constant(x), w: Weights { words: B::constant(words), form } };
        let [dx, dw] = gradients::<B::Inner, 2>(vjp, B::constant(dy), [true; 2], None);
        let made = "a gradient that is needed";
        (B::untracked(dx.expect(made)), B::untracked(dw.expect(made)))
    }
}

/// The number of rows of all parts.
pub(crate) fn rows_of(matrix: &[PackedMatrix]) -> usize {
    matrix.iter().map(|part| part.form().rows).sum()
}

/// The kernels that compute products with parts in place.
enum InPlace {
    /// Tiles, for which rows of y are padded.
    Tiles,
    /// Large blocks.
    Blocks,
}

/// Returns these kernels for a product `[n, k] · [m, k]ᵀ`, if one of them computes it.
fn in_place(device: &Device, [n, m, k]: [usize; 3]) -> Option<InPlace> {
    let shaders = matches!(device.as_dispatch(), DispatchDevice::Cube(_));
    let software = is_software(device);
    match shaders && k.is_multiple_of(4) {
        true if blocked(software, n, m) => Some(InPlace::Blocks),
        true if tiled(software, n) => Some(InPlace::Tiles),
        _ => None,
    }
}

/// Computes `x [n, k] · w [m, k]ᵀ → [n, m]`, in rows that may be longer.
pub(crate) fn product(x: Tensor<2>, matrix: &[PackedMatrix]) -> Tensor<2> {
    if let [whole] = matrix {
        return padded_product(x, whole.words(), whole.form());
    }
    let ([n, k], m) = (x.dims(), rows_of(matrix));
    let Some(kernels) = in_place(&x.device(), [n, m, k]) else {
        let columns = matrix
            .iter()
            .map(|part| padded_product(x.clone(), part.words(), part.form()));
        return Tensor::cat(columns.collect(), 1);
    };
    let (by_tiles, stride) = match kernels {
        InPlace::Tiles => (true, m.next_multiple_of(4)),
        InPlace::Blocks => (false, m),
    };
    let (mut y, mut first) = (Tensor::empty([n, stride], &x.device()), 0);
    for part in matrix {
        y = product_into(y, x.clone(), part.words(), part.form(), first, by_tiles);
        first += part.form().rows;
    }
    y
}

/// Calls `each` with the index of each part, its columns of `dy [n, stride]`, of which the last part has those that fill up the rows, and the part.
fn for_each_part(
    dy: &Tensor<2>,
    matrix: &[PackedMatrix],
    mut each: impl FnMut(usize, Range<usize>, &PackedMatrix),
) {
    let (stride, mut first) = (dy.dims()[1], 0);
    for (index, part) in matrix.iter().enumerate() {
        let end = first + part.form().rows;
        let last = index + 1 == matrix.len();
        each(index, first..if last { stride } else { end }, part);
        first = end;
    }
}

/// Computes `dy [n, m] · w [m, k] → [n, k]`.
pub(crate) fn input_gradient(dy: Tensor<2>, matrix: &[PackedMatrix]) -> Tensor<2> {
    if let [whole] = matrix {
        return input_of_whole(dy, whole.words(), whole.form());
    }
    let (n, m, k) = (dy.dims()[0], rows_of(matrix), matrix[0].form().columns);
    let device = dy.device();
    let shaders = matches!(device.as_dispatch(), DispatchDevice::Cube(_));
    if !shaders || !blocked_input(is_software(&device), [n, m, k]) {
        let mut slices = Vec::with_capacity(matrix.len());
        for_each_part(&dy, matrix, |_, columns, part| {
            let (words, form) = (part.words(), part.form());
            slices.push(slices_of_part(dy.clone(), words, columns, form, m));
        });
        return sum_of_slices(Tensor::cat(slices, 0), n, k);
    }
    let mut dx = Tensor::empty([n, k], &device);
    for range in parts(m, k) {
        let shape = [k, range.len().next_multiple_of(4)];
        let (mut transposed, mut first) = (Tensor::empty(shape, &device), 0);
        for part in matrix {
            let end = first + part.form().rows;
            let (from, to) = (range.start.max(first), range.end.min(end));
            if from < to {
                let at = from - range.start;
                let (words, form) = (part.words(), part.form());
                transposed = transposed_part(transposed, words, form, from - first, to - from, at);
            }
            first = end;
        }
        let add = range.start > 0;
        dx = input_of_columns(dx, dy.clone(), transposed, range.start, add);
    }
    dx
}

/// Computes `dy [n, m]ᵀ · x [n, k] → [m, k]` of each part that `needs` one, added to its sum if there is one.
pub(crate) fn weight_gradients(
    dy: Tensor<2>,
    x: &Tensor<2>,
    matrix: &[PackedMatrix],
    needs: &[bool],
    sums: &mut [Option<Tensor<2>>],
) {
    let of = rows_of(matrix);
    for_each_part(&dy, matrix, |index, columns, part| {
        if needs[index] {
            let (dy, x, m) = (dy.clone(), x.clone(), part.form().rows);
            sums[index] = Some(match sums[index].take() {
                Some(sum) => weight_of_part_onto(sum, dy, x, columns, m, of),
                None => weight_of_part(dy, x, columns, m, of),
            });
        }
    });
}

/// Computes both gradients of the product with a matrix of one part.
pub(crate) fn both(dy: Tensor<2>, x: Tensor<2>, whole: &PackedMatrix) -> [Tensor<2>; 2] {
    both_of_whole(dy, x, whole.words(), whole.form()).into()
}
