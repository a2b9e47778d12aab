//! Adafactor's second moments of a matrix, `row ← lerp(row, Σⱼ q, w)` and `col ← lerp(col, Σᵢ q, w)`, from the partial sums of the tiles
//! (shaders/README.md, "Adafactor").

use crate::gpu::Words;
use crate::optim::adafactor::sums::{TILE_COLS, TILE_ROWS};
use crate::optim::arithmetic::{lerp, sum};
use crate::optim::gate::open;

crate::kernel! {
    /// Adds `row_sums [A, ⌈B/64⌉], col_sums [⌈A/32⌉, B]` into `row [A], col [B]`; one thread per row or column.
    pub KERNEL = "adafactor_moments" [256], (row_sums, col_sums, gate) -> (mut row, mut col),
    /// Shape of the matrix, and the weight of this step.
    struct Params {
        /// A, the number of rows.
        rows: usize,
        /// B, the number of columns.
        cols: usize,
        /// w = max(t^decay_rate, 1 − beta2_cap).
        w: f32,
    } varying,
    twin twin
}

fn twin([row_sums, col_sums, gate]: [&[u32]; 3], [row, col]: [&mut [u32]; 2], s: &Params) {
    if !open(gate) {
        return;
    }
    let (row_sums, col_sums) = (row_sums.floats(), col_sums.floats());
    let (rows, cols) = (s.rows, s.cols);
    let (across, down) = (cols.div_ceil(TILE_COLS), rows.div_ceil(TILE_ROWS));
    for (row, sums) in row.floats_mut()[..rows]
        .iter_mut()
        .zip(row_sums.chunks(across))
    {
        *row = lerp(*row, sum(sums) as f32, s.w);
    }
    for (j, col) in col.floats_mut()[..cols].iter_mut().enumerate() {
        let sum: f64 = (0..down)
            .map(|tile| f64::from(col_sums[tile * cols + j]))
            .sum();
        *col = lerp(*col, sum as f32, s.w);
    }
}
