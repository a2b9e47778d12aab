//! The conversion from f32 to packed bf16, to nearest or stochastic (shaders/README.md, "Rounding to bf16").

use crate::bf16::put;
use crate::gpu::noise::{Noise, Writes};
use crate::gpu::{Kernels, Words};
use crate::random::Stream;

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[&KERNEL.all()];

crate::kernel! {
    /// Rounds `x [n]` f32 to `y [n]` packed bf16; `noise [n]` u32 (one word where it is not read).
    pub KERNEL = "cast_bf16" [256], (x, noise) -> (y),
    /// Parameters of the rounding and the place of its noise.
    struct Params {
        /// Number of elements.
        n: usize,
        /// Stream of the noise, a `Stream`: 0 m, 1 v, 2 p.
        stream: u32,
        /// Index in the noise of the first pair of elements, low word.
        first_pair_low: u32,
        /// Index in the noise of the first pair of elements, high word.
        first_pair_high: u32,
        /// Source of the rounding of the writes.
        noise: Noise,
    } varying,
    twin twin
}

fn twin([x, given]: [&[u32]; 2], [y]: [&mut [u32]; 1], s: &Params) {
    let writes = Writes::from_pair(s.noise, [s.first_pair_low, s.first_pair_high]);
    let stream = [Stream::M, Stream::V, Stream::P][s.stream.min(2) as usize];
    for (i, &x) in x.floats().iter().enumerate().take(s.n) {
        let bits = writes.round(x, writes.words(i), stream, i, given.get(i));
        put(y, i, s.n, bits);
    }
}
