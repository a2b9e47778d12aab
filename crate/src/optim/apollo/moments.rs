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

impl Params {
    /// Updates the moments of each channel and writes its statistics, from the entry `projected(channel, j)` of Pᵀ·G and the square of the
    /// length of a channel, both before clipping.
    pub(super) fn update(
        &self,
        gate: &[u32],
        [m, v, stats]: [&mut [u32]; 3],
        projected: impl Fn(usize, usize) -> f32,
        length: impl Fn(usize) -> f64,
    ) {
        let (m, v, stats) = (m.floats_mut(), v.floats_mut(), stats.floats_mut());
        let (channels, clip) = (self.channels, factor(gate));
        for c in 0..channels {
            let (mut squares, mut moment) = (0f64, 0f64);
            for j in 0..self.rank {
                // Scaled after the sum: where terms cancel, the rounding of entries scaled before would show.
                let r = self.sigma * (projected(c, j) * clip);
                let at = j * channels + c;
                let (m1, v1) = (lerp(m[at], r, self.w1), lerp(v[at], r * r, self.w2));
                if open(gate) {
                    (m[at], v[at]) = (m1, v1);
                }
                squares += f64::from(r).powi(2);
                moment += f64::from(m1 / (v1.sqrt() + self.eps)).powi(2);
            }
            stats[c] = moment.sqrt() as f32 / (squares.sqrt() as f32 + 1e-8);
            stats[channels + c] = length(c) as f32 * clip * clip;
            stats[2 * channels + c] = moment as f32;
            stats[3 * channels + c] = squares as f32;
        }
    }
}

fn twin([made, lengths, gate]: [&[u32]; 3], written: [&mut [u32]; 3], s: &Params) {
    let channels = s.channels;
    let length = |c| {
        (0..s.parts)
            .map(|part| lengths.wide(part * channels + c))
            .sum()
    };
    s.update(
        gate,
        written,
        |c, j| made.floats()[j * channels + c],
        length,
    );
}
