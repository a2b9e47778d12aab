//! `row ← lerp(row, Σⱼ q, w)`, `col ← lerp(col, Σᵢ q, w)` from the tiles' partial sums (shaders/README.md, "Adafactor").

use super::adafactor_sums::{TILE_COLS, TILE_ROWS};
use super::kernel::{Kernel, Words, read, update};
use super::noise::lerp;

crate::kernel_params! {
    /// The matrix and the weight of this step.
    pub struct Params {
        /// A.
        rows: u32,
        /// B.
        cols: u32,
        /// max(t^decay_rate, 1 − beta2_cap).
        w: f32,
    }
}

/// `row_sums [A, ⌈B/64⌉], col_sums [⌈A/32⌉, B]` into `row [A], col [B]`; one thread each.
pub static KERNEL: Kernel = Kernel {
    name: "adafactor_moments",
    source: include_str!("../../../shaders/adafactor_moments.wgsl"),
    bindings: &[read("row_sums"), read("col_sums"), update("row"), update("col")],
    params: Params::FIELDS,
    workgroup: 256,
    twin,
};

fn twin(buffers: &mut [Words<'_>], params: &[u32]) {
    let s = Params::from_words(params);
    let [row_sums, col_sums, row, col] = buffers else { return };
    let (row_sums, col_sums) = (row_sums.floats(), col_sums.floats());
    let (rows, cols) = (s.rows as usize, s.cols as usize);
    let (across, down) = (cols.div_ceil(TILE_COLS), rows.div_ceil(TILE_ROWS));
    for (row, sums) in row.floats_mut()[..rows].iter_mut().zip(row_sums.chunks(across)) {
        *row = lerp(*row, sums.iter().map(|&x| f64::from(x)).sum::<f64>() as f32, s.w);
    }
    for (j, col) in col.floats_mut()[..cols].iter_mut().enumerate() {
        let sum: f64 = (0..down).map(|tile| f64::from(col_sums[tile * cols + j])).sum();
        *col = lerp(*col, sum as f32, s.w);
    }
}
