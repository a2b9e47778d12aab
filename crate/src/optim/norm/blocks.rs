//! Σg² of a gradient by blocks of 256 (shaders/README.md, "Block tree"), the first stage of the global norm.

use crate::gpu::Words;
use crate::optim::arithmetic::bounded;

crate::kernel! {
    /// `g [n] → partials [first … first + ⌈n/256⌉]`, f32; the other partials stay.
    pub KERNEL = "global_norm" [64], (g) -> (mut partials),
    /// The gradient's length and its place among the partials.
    struct Params {
        /// Elements.
        n: u32,
        /// Index of this gradient's first partial.
        first: u32,
    },
    twin twin
}

/// Elements of one workgroup.
pub const ELEMENTS: usize = 2048;

fn twin([g]: [&[u32]; 1], [partials]: [&mut [u32]; 1], s: &Params) {
    let partials = partials.floats_mut().iter_mut().skip(s.first as usize);
    for (block, out) in g.floats()[..s.n as usize].chunks(256).zip(partials) {
        *out = block.iter().map(|&g| f64::from(bounded(g)).powi(2)).sum::<f64>() as f32;
    }
}
