//! Adafactor's sums for the size of an update: Σ a², Σ p² (relative step) and Σ row of a matrix (shaders/README.md, "Adafactor").

use crate::gpu::Words;
use crate::optim::adafactor::sums::{TILE_COLS, TILE_ROWS};
use crate::optim::arithmetic::{bounded, value};
use crate::optim::gate::factor;

crate::kernel! {
    /// Computes `g, p [A, B], row [A], col [B] → sums [3L]`.
    pub KERNEL = "adafactor_norm" [64], (g, p, row, col, gate) -> (sums),
    /// Shape of the matrix, and the distribution of the work.
    struct Params {
        /// A, the number of rows.
        rows: usize,
        /// B, the number of columns.
        cols: usize,
        /// L = min(256, tiles), the number of workgroups.
        lanes: usize,
        /// 1: Σ p² is needed.
        relative_step: bool,
        /// 1: p is packed bf16.
        packed: bool,
    } varying,
    twin twin
}

fn twin([g, p, row, col, gate]: [&[u32]; 5], [sums]: [&mut [u32]; 1], s: &Params) {
    let (g, row, col) = (g.floats(), row.floats(), col.floats());
    let (rows, cols, lanes) = (s.rows, s.cols, s.lanes);
    let across = cols.div_ceil(TILE_COLS);
    let mut total = vec![0f64; 3 * lanes];
    for i in 0..rows {
        let rho = 1.0 / row[i].sqrt();
        total[2 * lanes + i / 256 % lanes] += f64::from(row[i]);
        for j in 0..cols {
            let at = i * cols + j;
            let lane = (i / TILE_ROWS * across + j / TILE_COLS) % lanes;
            let a = (bounded(g[at]) * factor(gate) * rho) * (1.0 / col[j].sqrt());
            total[lane] += f64::from(a).powi(2);
            if s.relative_step {
                total[lanes + lane] += f64::from(value(p, at, s.packed)).powi(2);
            }
        }
    }
    for (out, sum) in sums.floats_mut().iter_mut().zip(total) {
        *out = sum as f32;
    }
}
