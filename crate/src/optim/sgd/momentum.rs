//! SGD with momentum, optionally Nesterov's, in place (shaders/README.md, "SGD"): `b = μ·buf + g`, `p ← p·d − η·(b or g + μ·b)`.

use crate::bf16::put;
use crate::gpu::Words;
use crate::gpu::noise::{Noise, Writes};
use crate::optim::arithmetic::{bounded, value};
use crate::optim::gate::{factor, open};
use crate::random::Stream;

crate::kernel! {
    /// Updates `p, buf [n]`, f32 or packed bf16, from `g [n]` f32.
    pub KERNEL = "sgd_momentum" [256], (g, gate) -> (mut p, mut buf),
    /// Scalars of a step and its noise.
    struct Params {
        /// Number of elements.
        n: usize,
        /// η, the learning rate.
        rate: f32,
        /// 1 − ηλ.
        d: f32,
        /// μ, the momentum.
        momentum: f32,
        /// 1: u = g + μ·b (Nesterov); 0: u = b.
        nesterov: bool,
        /// Source of the rounding of the writes.
        noise: Noise,
    } varying,
    twin twin
}

fn twin([g, gate]: [&[u32]; 2], [p, buf]: [&mut [u32]; 2], s: &Params) {
    if !open(gate) {
        return;
    }
    let n = s.n;
    let writes = Writes::new(s.noise);
    for (i, &g) in g.floats().iter().enumerate().take(n) {
        let g = bounded(g) * factor(gate);
        let old = value(buf, i, !writes.is_f32());
        let b = s.momentum * old + g;
        let u = if s.nesterov { g + s.momentum * b } else { b };
        writes.parameter(p, i, n, None, |p| p * s.d - s.rate * u);
        if writes.is_f32() {
            buf[i] = b.to_bits();
        } else {
            let bits = writes.round(b, writes.words(i), Stream::M, i, None);
            put(buf, i, n, bits);
        }
    }
}
