//! APOLLO's projected moments and channel scales from the result of a product (shaders/README.md, "APOLLO").

use crate::gpu::Words;
use crate::optim::arithmetic::lerp;
use crate::optim::gate::{factor, open};

crate::kernel! {
    /// Updates `m, v [r, channels]` and writes `stats [4, channels]`, from `projected [r, channels]` and `lengths [parts, channels]`.
    pub KERNEL = "apollo_moments" [64], (projected, lengths, gate) -> (mut m, mut v, stats),
    /// Shapes, and the scalars of a step.
    struct Params {
        /// Number of channels.
        channels: usize,
        /// r, the rank.
        rank: usize,
        /// Number of parts of the length of a channel.
        parts: usize,
        /// σ = √(dim/r).
        sigma: f32,
        /// 1 − β1.
        w1: f32,
        /// 1 − β2.
        w2: f32,
        /// ε.
        eps: f32,
    },
    twin twin
}

/// Number of channels per workgroup.
pub const CHANNELS: usize = 16;

fn twin([made, lengths, gate]: [&[u32]; 3], [m, v, stats]: [&mut [u32]; 3], s: &Params) {
    let (m, v, stats) = (m.floats_mut(), v.floats_mut(), stats.floats_mut());
    let channels = s.channels;
    for c in 0..channels {
        let (mut projected, mut moment) = (0f64, 0f64);
        for j in 0..s.rank {
            let at = j * channels + c;
            let r = s.sigma * (made.floats()[at] * factor(gate));
            let (m1, v1) = (lerp(m[at], r, s.w1), lerp(v[at], r * r, s.w2));
            if open(gate) {
                (m[at], v[at]) = (m1, v1);
            }
            projected += f64::from(r).powi(2);
            moment += f64::from(m1 / (v1.sqrt() + s.eps)).powi(2);
        }
        let length: f64 = (0..s.parts)
            .map(|part| f64::from(lengths.floats()[part * channels + c]))
            .sum();
        stats[c] = moment.sqrt() as f32 / (projected.sqrt() as f32 + 1e-8);
        stats[channels + c] = length as f32 * factor(gate) * factor(gate);
        stats[2 * channels + c] = moment as f32;
        stats[3 * channels + c] = projected as f32;
    }
}
