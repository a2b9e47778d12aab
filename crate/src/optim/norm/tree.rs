//! The later stages of the global norm: sums of 65,536 values each by the block tree (shaders/README.md, "Block tree").

use crate::gpu::Words;
use crate::optim::arithmetic::sum;

crate::kernel! {
    /// Sums `x [n] → y [⌈n/65536⌉]`, f32.
    pub KERNEL = "sum_tree" [64], (x) -> (y),
    /// Length of the sequence.
    struct Params {
        /// Number of values.
        n: usize,
    },
    twin twin
}

/// Number of values per workgroup.
pub const VALUES: usize = 65_536;

fn twin([x]: [&[u32]; 1], [y]: [&mut [u32]; 1], s: &Params) {
    for (part, out) in x.floats()[..s.n].chunks(VALUES).zip(y.floats_mut()) {
        *out = sum(part) as f32;
    }
}
