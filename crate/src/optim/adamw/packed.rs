//! AdamW on a packed bf16 tensor with bf16 moments, in place, with three rounded writes (shaders/README.md, "AdamW").

use crate::bf16::{get, put};
use crate::gpu::Words;
use crate::gpu::noise::{Noise, Writes};
use crate::optim::adamw::kernel;
use crate::optim::gate::{factor, open};
use crate::random::Stream;

crate::kernel! {
    /// Updates `p, m, v [n]`, packed bf16, from `g [n]` f32 and `noise [3n]` u32 (one word where it is not read).
    pub KERNEL = "adamw_bf16" [256], (g, noise, gate) -> (mut p, mut m, mut v),
    /// Scalars of a step and its noise.
    struct Params {
        /// Number of elements.
        n: usize,
        /// 1 − β1.
        w1: f32,
        /// 1 − β2.
        w2: f32,
        /// 1 − ηλ.
        d: f32,
        /// η·√(1 − β2ᵗ)/(1 − β1ᵗ).
        alpha: f32,
        /// ε.
        eps: f32,
        /// Source of the rounding of the writes.
        noise: Noise,
    } varying,
    twin twin
}

fn twin([g, given, gate]: [&[u32]; 3], [p, m, v]: [&mut [u32]; 3], s: &Params) {
    if !open(gate) {
        return;
    }
    let rule = kernel::Params {
        n: s.n,
        w1: s.w1,
        w2: s.w2,
        d: s.d,
        alpha: s.alpha,
        eps: s.eps,
    };
    let writes = Writes::new(s.noise);
    let n = s.n;
    for (i, &g) in g.floats().iter().enumerate().take(n) {
        let (x, m1, v1) =
            kernel::element(&rule, factor(gate), [get(p, i), g, get(m, i), get(v, i)]);
        let words = writes.words(i);
        let round = |stream: Stream, value: f32| {
            writes.round(value, words, stream, i, given.get(stream as usize * n + i))
        };
        let (m1, v1, x) = (
            round(Stream::M, m1),
            round(Stream::V, v1),
            round(Stream::P, x),
        );
        put(m, i, n, m1);
        put(v, i, n, v1);
        put(p, i, n, x);
    }
}
