//! Chains of multiply-adds that depend on nothing but themselves: what a device can do at most, by which the other kernels are measured as
//! they are by [`copy`](crate::gpu::copy) for its bandwidth.

use crate::gpu::{Kernels, Words};

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[&KERNEL.all()];

/// Chains of a thread.
const CHAINS: usize = 16;

/// Links of each chain in a round.
const LINKS: u32 = 8;

crate::kernel! {
    /// `y = Σ c` of chains `c ← a c + b` that begin at `x`, and sixteenths above it.
    pub KERNEL = "fma" [64], (x) -> (y),
    /// Shapes, and the multiply-add.
    struct Params {
        /// Elements.
        n: u32,
        /// Rounds of 8 links of each chain.
        rounds: u32,
        /// The factor.
        a: f32,
        /// What is added.
        b: f32,
    },
    twin |[x], [y], p| {
        for (x, y) in x.floats().iter().zip(y.floats_mut()).take(p.n as usize) {
            // A product of two f32 is exact in f64.
            let link = |c: f32| (f64::from(p.a) * f64::from(c) + f64::from(p.b)) as f32;
            let chain = |j: usize| (0..LINKS * p.rounds).fold(x + j as f32 / CHAINS as f32, |c, _| link(c));
            *y = (0..CHAINS).map(|j| f64::from(chain(j))).sum::<f64>() as f32;
        }
    }
}

impl Params {
    /// A factor that never lets a chain come to rest nor leave what x spans; a launch of `n` threads.
    pub fn of(n: u32, rounds: u32) -> Self {
        Self { n, rounds, a: -0.999_9, b: 1.0 }
    }

    /// Floating point operations of a launch: two for each link.
    pub fn flops(&self) -> f64 {
        f64::from(self.n) * f64::from(self.rounds) * f64::from(2 * LINKS) * CHAINS as f64
    }
}
