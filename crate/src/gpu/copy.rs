//! `y[y_start ..] = x[x_start ..]`, word for word: the copy for tensors whose dtype the compiler does not know (packed bf16), and for parts of
//! tensors that go to the device and back piece by piece.

use crate::gpu::Kernels;

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[&KERNEL.all()];

crate::kernel! {
    /// `x [x_start .. x_start + n] → y [y_start .. y_start + n]`; the rest of y stays.
    pub KERNEL = "u32_copy" [256], (x) -> (mut y),
    /// Words to copy.
    struct Params {
        /// Number of words.
        n: u32,
        /// First word of x.
        x_start: u32,
        /// First word of y.
        y_start: u32,
    },
    twin |[x], [y], p| {
        let (from, to, n) = (p.x_start as usize, p.y_start as usize, p.n as usize);
        y[to..to + n].copy_from_slice(&x[from..from + n]);
    }
}

impl Params {
    /// The first `n` words.
    pub fn whole(n: u32) -> Self {
        Self { n, x_start: 0, y_start: 0 }
    }
}
