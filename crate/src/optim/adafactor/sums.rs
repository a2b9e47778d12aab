//! Adafactor's row and column sums of `q = g² + ε₁` of a matrix, by tiles of 32 × 64 (shaders/README.md, "Adafactor" and "Block tree").

use crate::gpu::Words;
use crate::optim::arithmetic::bounded;
use crate::optim::gate::factor;

/// Number of rows of a tile.
pub const TILE_ROWS: usize = 32;
/// Number of columns of a tile.
pub const TILE_COLS: usize = 64;
/// Number of tiles per workgroup.
pub const TILES: usize = 8;

crate::kernel! {
    /// Computes `g [A, B] → row_sums [A, ⌈B/64⌉], col_sums [⌈A/32⌉, B]`; 8 threads per tile.
    pub KERNEL = "adafactor_sums" [64], (g, gate) -> (row_sums, col_sums),
    /// Shape of the matrix, and the constant that is added to its squares.
    struct Params {
        /// A, the number of rows.
        rows: usize,
        /// B, the number of columns.
        cols: usize,
        /// ε₁.
        eps1: f32,
    } varying,
    twin twin
}

fn twin([g, gate]: [&[u32]; 2], [row_sums, col_sums]: [&mut [u32]; 2], s: &Params) {
    let (g, row_sums, col_sums) = (g.floats(), row_sums.floats_mut(), col_sums.floats_mut());
    let (rows, cols) = (s.rows, s.cols);
    let across = cols.div_ceil(TILE_COLS);
    let q = |i: usize, j: usize| {
        let g = bounded(g[i * cols + j]) * factor(gate);
        f64::from(g * g + s.eps1)
    };
    for i in 0..rows {
        for tile in 0..across {
            let columns = tile * TILE_COLS..cols.min((tile + 1) * TILE_COLS);
            row_sums[i * across + tile] = columns.map(|j| q(i, j)).sum::<f64>() as f32;
        }
    }
    let mut sums = vec![0f64; cols];
    for i in 0..rows {
        for (j, sum) in sums.iter_mut().enumerate() {
            *sum += q(i, j);
        }
        if (i + 1) % TILE_ROWS == 0 || i + 1 == rows {
            for (out, sum) in col_sums[i / TILE_ROWS * cols..].iter_mut().zip(&mut sums) {
                *out = std::mem::take(sum) as f32;
            }
        }
    }
}
