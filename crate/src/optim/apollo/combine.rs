//! APOLLO's tensor scale (mini) and norm-growth limiter (shaders/README.md, "APOLLO", 3 and 4; limiter: arXiv:2410.01623).

use crate::gpu::Words;
use crate::optim::arithmetic::lane_sum;
use crate::optim::gate::open;

crate::kernel! {
    /// Computes `factors [2]` = s (mini), ℓ and updates `norm [1]`, from `stats [4, channels]`; one workgroup.
    pub KERNEL = "apollo_combine" [64], (stats, gate) -> (mut norm, factors),
    /// Scalars of a step.
    struct Params {
        /// Number of channels.
        channels: usize,
        /// 1: one scale for the whole tensor.
        mini: bool,
        /// √scale if it is applied before the limiter, else 1.
        front: f32,
        /// Smallest stored norm by which an update is limited.
        threshold: f32,
        /// γ, the growth limit.
        gamma: f32,
    },
    twin twin
}

fn twin([stats, gate]: [&[u32]; 2], [norm, factors]: [&mut [u32]; 2], p: &Params) {
    let (stats, norm, factors) = (
        stats.floats(),
        &mut norm.floats_mut()[0],
        factors.floats_mut(),
    );
    let channels = p.channels;
    let sum = |k: usize| lane_sum(stats, k, channels);
    let (s, length) = if p.mini {
        (sum(2).sqrt() as f32 / (sum(3).sqrt() as f32 + 1e-8), sum(1))
    } else {
        (
            1.0,
            stats[..channels]
                .iter()
                .zip(&stats[channels..])
                .map(|(&s, &g)| f64::from(s).powi(2) * f64::from(g))
                .sum(),
        )
    };
    let n = p.front * (s * length.sqrt() as f32);
    let mut limit = 1.0;
    if *norm >= p.threshold {
        let growth = n / (*norm + 1e-8);
        limit = if growth.is_nan() {
            growth
        } else {
            growth.max(p.gamma)
        } / p.gamma;
    }
    if open(gate) {
        *norm = n / limit;
    }
    factors[..2].copy_from_slice(&[s, limit]);
}
