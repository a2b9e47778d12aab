//! SGD without momentum, in place (shaders/README.md, "SGD"): `p ← p·d − η·g`.

use crate::gpu::Words;
use crate::gpu::noise::{Noise, Writes};
use crate::optim::arithmetic::bounded;
use crate::optim::gate::{factor, open};

crate::kernel! {
    /// Updates `p [n]`, f32 or packed bf16, from `g [n]` f32.
    pub KERNEL = "sgd" through "chunks/pairs" [256], (g, gate) -> (mut p),
    /// Scalars of a step and its noise.
    struct Params {
        /// Number of elements.
        n: usize,
        /// η, the learning rate.
        rate: f32,
        /// 1 − ηλ.
        d: f32,
        /// Source of the rounding of the writes.
        noise: Noise,
    } varying,
    twin twin
}

fn twin([g, gate]: [&[u32]; 2], [p]: [&mut [u32]; 1], s: &Params) {
    if !open(gate) {
        return;
    }
    let writes = Writes::new(s.noise);
    for (i, &g) in g.floats().iter().enumerate().take(s.n) {
        writes.parameter(p, i, s.n, None, |p| {
            p * s.d - s.rate * (bounded(g) * factor(gate))
        });
    }
}
