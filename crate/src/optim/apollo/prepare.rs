//! The inputs of APOLLO's product (shaders/README.md, "APOLLO"): a bounded gradient and the projector, and also the lengths of the channels.

use crate::gpu::Words;
use crate::optim::apollo::project::entries;
use crate::optim::arithmetic::bounded;

/// Number of rows of a part of the length of a column.
pub const PART: usize = 32;

crate::kernel! {
    /// Bounds `g [rows, cols]` in place and writes `pt [r, dim]` and `lengths [parts, channels]`; `given [dim, r]` (one word where it is not read).
    pub KERNEL = "apollo_prepare" [64], (given) -> (mut g, pt, lengths),
    /// The matrix, its cut into channels, and the projector.
    struct Params {
        /// Number of rows of g.
        rows: usize,
        /// Number of columns of g.
        cols: usize,
        /// r, the rank.
        rank: usize,
        /// 1: a channel is a row; 0: a column.
        by_row: bool,
        /// Number of workgroups for g; the remaining ones make the projector.
        lines: usize,
        /// 1: P is in the buffer `given`; 0: it is made from the key.
        given: bool,
        /// 1/√(63·dim).
        unit: f32,
        /// Philox key of the projector, low word.
        key0: u32,
        /// Philox key of the projector, high word.
        key1: u32,
        /// Refresh index, low word.
        refresh_low: u32,
        /// Refresh index, high word.
        refresh_high: u32,
    } varying,
    twin twin
}

impl Params {
    /// The length of a channel.
    pub fn dim(&self) -> usize {
        if self.by_row { self.cols } else { self.rows }
    }

    /// The number of parts of the length of a channel.
    pub fn parts(&self) -> usize {
        if self.by_row {
            1
        } else {
            (self.rows).div_ceil(PART)
        }
    }

    /// The number of workgroups for a gradient of this shape.
    pub fn lines_of(by_row: bool, rows: usize, cols: usize) -> usize {
        if by_row {
            rows
        } else {
            rows.div_ceil(PART) * cols.div_ceil(64)
        }
    }

    /// The number of all workgroups.
    pub fn groups(&self) -> u32 {
        let entries = self.dim() * self.rank;
        (self.lines + entries.div_ceil(2).div_ceil(64)) as u32
    }
}

fn twin([given]: [&[u32]; 1], [g, pt, lengths]: [&mut [u32]; 3], s: &Params) {
    let (g, pt, lengths) = (g.floats_mut(), pt.floats_mut(), lengths.floats_mut());
    let (rows, cols, rank, dim) = (s.rows, s.cols, s.rank, s.dim());
    g[..rows * cols].iter_mut().for_each(|g| *g = bounded(*g));
    let square = |r: usize, c: usize| f64::from(g[r * cols + c]).powi(2);
    for part in 0..s.parts() {
        if s.by_row {
            (0..rows)
                .for_each(|r| lengths[r] = (0..cols).map(|c| square(r, c)).sum::<f64>() as f32);
        } else {
            let of = part * PART..rows.min((part + 1) * PART);
            (0..cols).for_each(|c| {
                lengths[part * cols + c] = of.clone().map(|r| square(r, c)).sum::<f64>() as f32
            });
        }
    }
    let refresh = [s.refresh_low, s.refresh_high];
    let given = s.given.then_some(given);
    let p = entries(given, [s.key0, s.key1], refresh, [dim, rank]);
    for e in 0..dim * rank {
        pt[e % rank * dim + e / rank] = p[e];
    }
}
