//! APOLLO's projected moments and channel scales (shaders/README.md, "APOLLO"): `R = σ·Pᵀ·G`, Adam's moments of R, `s = ‖R̃‖/‖R‖`.

use crate::gpu::Words;
use crate::optim::arithmetic::{bounded, lerp};
use crate::optim::gate::{factor, open};
use crate::random::words;

crate::kernel! {
    /// Updates `m, v [r, channels]` and writes `stats [4, channels]`, from `g [A, B]` and `given [dim, r]` (one word where it is not read).
    pub KERNEL = "apollo_project" [256], (g, given, gate) -> (mut m, mut v, stats),
    /// The cut of the matrix into channels, the projector, and the scalars of a step.
    struct Params {
        /// Number of channels.
        channels: usize,
        /// Length of a channel.
        dim: usize,
        /// r, the rank.
        rank: usize,
        /// Distance from a channel to the next, in elements.
        channel_stride: usize,
        /// Distance from an entry of a channel to the next, in elements.
        dim_stride: usize,
        /// 1: P is in the buffer `given`; 0: it is made from the key.
        given: bool,
        /// σ = √(dim/r).
        sigma: f32,
        /// 1/√(63·dim).
        unit: f32,
        /// 1 − β1.
        w1: f32,
        /// 1 − β2.
        w2: f32,
        /// ε.
        eps: f32,
        /// Philox key of the projector, low word.
        key0: u32,
        /// Philox key of the projector, high word.
        key1: u32,
        /// Refresh index, low word.
        refresh_low: u32,
        /// Refresh index, high word.
        refresh_high: u32,
    } varying,
    twin twin
}

/// Computes z of entry `e` = i·r + j at refresh `k`: an odd integer, the sum of 63 fair signs (shaders/README.md, "APOLLO projectors").
pub fn signs(key: [u32; 2], e: u64, k: u64) -> i32 {
    let x = words(key, e >> 1, k);
    let (a, b) = if e & 1 == 0 {
        (x[0], x[1])
    } else {
        (x[2], x[3])
    };
    2 * (a.count_ones() + (b & 0x7FFF_FFFF).count_ones()) as i32 - 63
}

/// Makes the normal projector P `[dim, r]`.
pub fn normal(key: [u32; 2], k: u64, dim: usize, rank: usize) -> Vec<f32> {
    let unit = unit(dim);
    (0..(dim * rank) as u64)
        .map(|e| signs(key, e, k) as f32 * unit)
        .collect()
}

/// Returns 1/√(63·dim), the factor that gives the entries of a normal projector the variance 1/dim.
pub fn unit(dim: usize) -> f32 {
    (1.0 / (63.0 * dim as f64).sqrt()) as f32
}

/// Sums with compensation, which keeps the digits that f64 would lose where large terms cancel (Neumaier 1974): two gradients at their bound of
/// 1e15 hide the others.
fn compensated(terms: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0f64, 0f64);
    for x in terms {
        let next = sum + x;
        lost += if sum.abs() >= x.abs() {
            (sum - next) + x
        } else {
            (x - next) + sum
        };
        sum = next;
    }
    sum + lost
}

fn twin([g, given, gate]: [&[u32]; 3], [m, v, stats]: [&mut [u32]; 3], s: &Params) {
    let (g, m, v, stats) = (
        g.floats(),
        m.floats_mut(),
        v.floats_mut(),
        stats.floats_mut(),
    );
    let (channels, dim, rank) = (s.channels, s.dim, s.rank);
    let made;
    let p = if s.given {
        given.floats()
    } else {
        made = normal(
            [s.key0, s.key1],
            u64::from(s.refresh_low) | u64::from(s.refresh_high) << 32,
            dim,
            rank,
        );
        &made
    };
    for c in 0..channels {
        let entry = |i: usize| bounded(g[c * s.channel_stride + i * s.dim_stride]);
        let (mut projected, mut moment) = (0f64, 0f64);
        for j in 0..rank {
            let sum =
                compensated((0..dim).map(|i| f64::from(p[i * rank + j]) * f64::from(entry(i))));
            // Scaled after the sum: where terms cancel, the rounding of entries scaled before would show.
            let r = s.sigma * (sum as f32 * factor(gate));
            let at = j * channels + c;
            let (m1, v1) = (lerp(m[at], r, s.w1), lerp(v[at], r * r, s.w2));
            if open(gate) {
                (m[at], v[at]) = (m1, v1);
            }
            projected += f64::from(r).powi(2);
            moment += f64::from(m1 / (v1.sqrt() + s.eps)).powi(2);
        }
        stats[c] = moment.sqrt() as f32 / (projected.sqrt() as f32 + 1e-8);
        stats[channels + c] = (0..dim).map(|i| f64::from(entry(i)).powi(2)).sum::<f64>() as f32
            * factor(gate)
            * factor(gate);
        stats[2 * channels + c] = moment as f32;
        stats[3 * channels + c] = projected as f32;
    }
}
