//! A copy word for word, `y[y_start ..] = x[x_start ..]`: for tensors of a dtype that WGSL does not have (packed bf16), and for tensors that go
//! to the device and back in pieces.

use crate::gpu::Kernels;

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[&KERNEL.all()];

crate::kernel! {
    /// Copies `x [x_start .. x_start + n] → y [y_start .. y_start + n]`; the rest of y is unchanged.
    pub KERNEL = "u32_copy" [256], (x) -> (mut y),
    /// The words to copy.
    struct Params {
        /// Number of words.
        n: usize,
        /// Index of the first word that is read from x.
        x_start: usize,
        /// Index of the first word that is written to y.
        y_start: usize,
    },
    twin |[x], [y], p| {
        let (from, to, n) = (p.x_start, p.y_start, p.n);
        y[to..to + n].copy_from_slice(&x[from..from + n]);
    }
}

impl Params {
    /// The parameters that copy the first `n` words.
    pub fn whole(n: usize) -> Self {
        Self {
            n,
            x_start: 0,
            y_start: 0,
        }
    }
}
