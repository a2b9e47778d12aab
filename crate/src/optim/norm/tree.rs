//! Sums of 65,536 values each by the block tree (shaders/README.md, "Block tree").

use crate::gpu::Words;

crate::kernel! {
    /// `x [n] → y [⌈n/65536⌉]`, f32.
    pub KERNEL = "sum_tree" [64], (x) -> (y),
    /// The sequence.
    struct Params {
        /// Values.
        n: u32,
    },
    twin twin
}

/// Values of one workgroup.
pub const VALUES: usize = 65_536;

fn twin([x]: [&[u32]; 1], [y]: [&mut [u32]; 1], s: &Params) {
    for (part, out) in x.floats()[..s.n as usize].chunks(VALUES).zip(y.floats_mut()) {
        *out = part.iter().map(|&x| f64::from(x)).sum::<f64>() as f32;
    }
}
