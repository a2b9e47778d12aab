//! Row and column sums of `q = g² + ε₁` of a matrix, by tiles of 32 × 64 (shaders/README.md, "Adafactor" and "Block tree").

use super::kernel::{Kernel, Words, read, write};
use super::noise::bounded;

/// Rows of a tile.
pub const TILE_ROWS: usize = 32;
/// Columns of a tile.
pub const TILE_COLS: usize = 64;
/// Tiles of one workgroup.
pub const TILES: usize = 8;

crate::kernel_params! {
    /// The matrix and what is added to its squares.
    pub struct Params {
        /// A.
        rows: u32,
        /// B.
        cols: u32,
        /// Factor of the gradient (clipping).
        scale: f32,
        /// ε₁.
        eps1: f32,
    }
}

/// `g [A, B] → row_sums [A, ⌈B/64⌉], col_sums [⌈A/32⌉, B]`; 8 threads a tile.
pub static KERNEL: Kernel = Kernel {
    name: "adafactor_sums",
    source: include_str!("../../../shaders/adafactor_sums.wgsl"),
    bindings: &[read("g"), write("row_sums"), write("col_sums")],
    params: Params::FIELDS,
    workgroup: 64,
    twin,
};

fn twin(buffers: &mut [Words<'_>], params: &[u32]) {
    let s = Params::from_words(params);
    let [g, row_sums, col_sums] = buffers else { return };
    let (g, row_sums, col_sums) = (g.floats(), row_sums.floats_mut(), col_sums.floats_mut());
    let (rows, cols) = (s.rows as usize, s.cols as usize);
    let across = cols.div_ceil(TILE_COLS);
    let q = |i: usize, j: usize| {
        let g = bounded(g[i * cols + j]) * s.scale;
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
