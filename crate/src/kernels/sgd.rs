//! SGD without momentum, in place (shaders/README.md, "SGD"): `p ← p·d − η·g`.

use super::kernel::Words;
use super::noise::bounded;
use super::packed::Writes;

crate::kernel! {
    /// `p [n]` f32 or packed bf16, `g [n]` f32.
    pub KERNEL = "sgd" [256], (g) -> (mut p),
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

fn twin([g]: [&[u32]; 1], [p]: [&mut [u32]; 1], s: &Params) {
    let writes = Writes::new(s.rounding, [s.key0, s.key1], [s.step_low, s.step_high], [s.first_pair_low, s.first_pair_high]);
    for (i, &g) in g.floats().iter().enumerate().take(s.n as usize) {
        writes.parameter(p, i, s.n as usize, None, |p| p * s.d - s.rate * (bounded(g) * s.scale));
    }
}
