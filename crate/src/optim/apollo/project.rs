//! APOLLO's projected moments and channel scales (shaders/README.md, "APOLLO"): `R = σ·Pᵀ·G`, Adam's moments of R, `s = ‖R̃‖/‖R‖`.

use std::borrow::Cow;

use super::moments;
use crate::gpu::Words;
use crate::gpu::noise::long;
use crate::optim::arithmetic::bounded;
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

/// The entries of the projector: given ones, or those of the normal projector that the key makes.
pub(super) fn entries<'a>(
    given: Option<&'a [u32]>,
    key: [u32; 2],
    refresh: [u32; 2],
    [dim, rank]: [usize; 2],
) -> Cow<'a, [f32]> {
    match given {
        Some(words) => words.floats().into(),
        None => normal(key, long(refresh), dim, rank).into(),
    }
}

fn twin([g, given, gate]: [&[u32]; 3], written: [&mut [u32]; 3], s: &Params) {
    let (g, dim, rank) = (g.floats(), s.dim, s.rank);
    let given = s.given.then_some(given);
    let refresh = [s.refresh_low, s.refresh_high];
    let p = entries(given, [s.key0, s.key1], refresh, [dim, rank]);
    let entry = |c: usize, i: usize| f64::from(bounded(g[c * s.channel_stride + i * s.dim_stride]));
    let projected = |c, j| {
        let terms = (0..dim).map(|i| f64::from(p[i * rank + j]) * entry(c, i));
        compensated(terms) as f32
    };
    let moments = moments::Params {
        channels: s.channels,
        rank,
        parts: 1,
        sigma: s.sigma,
        w1: s.w1,
        w2: s.w2,
        eps: s.eps,
    };
    let length = |c| (0..dim).map(|i| entry(c, i).powi(2)).sum();
    moments.update(gate, written, projected, length);
}
