//! Sums over rows, for the gradient of a bias and the last pass of the norms' weight gradients.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;

use crate::gpu::launch::{Launch, rows_columns};
use crate::gpu::{Kernels, Words, groups_of_64};

/// Number of rows that one thread adds up.
const ROWS: usize = 64;

/// Maximum number of rows that one dispatch adds up on a GPU, with workgroups of 16 columns.
const ROWS_OF_A_GROUP: usize = 8192;

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[&KERNEL.all(), &GROUP.all()];

crate::kernel! {
    /// Computes `y[p, c] = Σ x[r, c]` over the rows of part p.
    pub KERNEL = "column_sum" [64], (x) -> (y),
    /// Shape of x, and its cut into parts.
    struct Params {
        /// Number of rows.
        n: usize,
        /// Number of columns.
        width: usize,
        /// Number of rows of a part.
        rows: usize,
        /// Number of parts.
        parts: usize,
    },
    twin twin
}

crate::kernel! {
    /// Computes `y[c] = Σ x[r, c]` by workgroups of 16 columns.
    pub GROUP = "column_sum_group" [256], (x) -> (y),
    /// Shape of x.
    struct GroupParams {
        /// Number of rows.
        n: usize,
        /// Number of columns.
        width: usize,
    },
    twin |[x], [y], p| {
        for c in 0..p.width {
            let sum: f64 = (0..p.n).map(|r| x.wide(r * p.width + c)).sum();
            y.set(c, sum);
        }
    }
}

impl Params {
    /// Cuts `n` rows of `width` columns into parts.
    pub fn cut(n: usize, width: usize) -> Self {
        Self {
            n,
            width,
            rows: ROWS,
            parts: n.div_ceil(ROWS).max(1),
        }
    }

    /// The range of rows of a part, for the twins.
    pub fn part(&self, part: usize) -> std::ops::Range<usize> {
        let first = part * self.rows;
        first..(first + self.rows).min(self.n)
    }

    /// The number of workgroups for one thread per column of each part.
    pub fn groups(&self) -> u32 {
        groups_of_64(self.parts * self.width)
    }
}

fn twin([x]: [&[u32]; 1], [y]: [&mut [u32]; 1], p: &Params) {
    let width = p.width;
    for i in 0..p.parts * width {
        let sum: f64 = p
            .part(i / width)
            .map(|r| x.wide(r * width + i % width))
            .sum();
        y.set(i, sum);
    }
}

/// Sums the rows of `x [n, C] → [C]`.
pub fn column_sum<B: Launch>(mut x: FloatTensor<B>) -> FloatTensor<B> {
    loop {
        let (n, width) = rows_columns(&x.shape());
        if !B::TWINS && !B::software(&x) && n > ROWS && n <= ROWS_OF_A_GROUP {
            let y = B::floats(&x, [width]);
            let params = GroupParams { n, width };
            let [y] = B::launch(&GROUP, [x], [y], &params, width.div_ceil(16) as u32);
            return y;
        }
        let params = Params::cut(n, width);
        let parts = params.parts;
        let shape = if parts == 1 {
            vec![width]
        } else {
            vec![parts, width]
        };
        x = B::made(&KERNEL, [x], shape, &params, parts * width);
        if parts == 1 {
            return x;
        }
    }
}
