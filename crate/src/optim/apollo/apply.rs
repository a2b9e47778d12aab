//! APOLLO's update of a matrix, in place (shaders/README.md, "APOLLO", 3 to 5): `U = G·s`, limited; `x = p·d − α·√scale·U`.

use crate::gpu::Words;
use crate::gpu::noise::{Noise, Writes};
use crate::optim::arithmetic::bounded;
use crate::optim::gate::{factor, open};

crate::kernel! {
    /// Updates `p [A, B]`, f32 or packed bf16, from `g [A, B]`, `stats [4, channels]` and `factors [2]`.
    pub KERNEL = "apollo_apply" through "chunks/pairs" [256], (g, stats, factors, gate) -> (mut p),
    /// Scalars of a step and its noise.
    struct Params {
        /// Number of elements.
        n: usize,
        /// B, the number of columns.
        cols: usize,
        /// 1: a channel is a row (side right); 0: a column.
        channels_are_rows: bool,
        /// 1: one scale for the whole tensor.
        mini: bool,
        /// √scale if it is applied before the limiter, else 1.
        front: f32,
        /// √scale if it is applied after the limiter, else 1.
        back: f32,
        /// 1 − ηλ.
        d: f32,
        /// η·√(1 − β2ᵗ)/(1 − β1ᵗ).
        alpha: f32,
        /// Source of the rounding of the writes.
        noise: Noise,
    } varying,
    twin twin
}

fn twin([g, stats, factors, gate]: [&[u32]; 4], [p]: [&mut [u32]; 1], s: &Params) {
    if !open(gate) {
        return;
    }
    let (g, stats, factors) = (g.floats(), stats.floats(), factors.floats());
    let (n, cols) = (s.n, s.cols);
    let writes = Writes::new(s.noise);
    for i in 0..n {
        let channel = if s.channels_are_rows {
            i / cols
        } else {
            i % cols
        };
        let u = bounded(g[i]) * factor(gate) * if s.mini { factors[0] } else { stats[channel] };
        let u = ((u * s.front) / factors[1]) * s.back;
        writes.parameter(p, i, n, None, |p| p * s.d - s.alpha * u);
    }
}
