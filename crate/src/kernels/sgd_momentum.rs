//! SGD with momentum, optionally Nesterov's, in place (shaders/README.md, "SGD"): `b = μ·buf + g`, `p ← p·d − η·(b or g + μ·b)`.

use super::kernel::Words;
use super::noise::{Stream, bounded};
use super::packed::{Writes, get, put};

crate::kernel! {
    /// `p, buf [n]` f32 or packed bf16, `g [n]` f32.
    pub KERNEL = "sgd_momentum" [256], (g) -> (mut p, mut buf),
    /// Scalars of a step and the place of the noise.
    struct Params {
        /// Elements.
        n: u32,
        /// η.
        rate: f32,
        /// 1 − ηλ.
        d: f32,
        /// Factor of the gradient (clipping).
        scale: f32,
        /// μ.
        momentum: f32,
        /// 1: u = g + μ·b.
        nesterov: u32,
        /// `Rounding::word`.
        rounding: u32,
        /// Philox key.
        key0: u32,
        /// Philox key.
        key1: u32,
        /// The parameter's step, low word.
        step_low: u32,
        /// The parameter's step, high word.
        step_high: u32,
        /// Pair index of word 0, low word.
        first_pair_low: u32,
        /// Pair index of word 0, high word.
        first_pair_high: u32,
    },
    twin twin
}

fn twin([g]: [&[u32]; 1], [p, buf]: [&mut [u32]; 2], s: &Params) {
    let n = s.n as usize;
    let writes = Writes::new(s.rounding, [s.key0, s.key1], [s.step_low, s.step_high], [s.first_pair_low, s.first_pair_high]);
    for (i, &g) in g.floats().iter().enumerate().take(n) {
        let g = bounded(g) * s.scale;
        let old = if writes.is_f32() { f32::from_bits(buf[i]) } else { get(buf, i) };
        let b = s.momentum * old + g;
        let u = if s.nesterov != 0 { g + s.momentum * b } else { b };
        writes.parameter(p, i, n, None, |p| p * s.d - s.rate * u);
        if writes.is_f32() {
            buf[i] = b.to_bits();
        } else {
            let bits = writes.round(b, writes.words(i), Stream::M, i, None);
            put(buf, i, n, bits);
        }
    }
}
