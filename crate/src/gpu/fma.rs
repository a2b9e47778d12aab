//! Chains of multiply-adds that depend on nothing but themselves. They measure the peak arithmetic rate of a device, with which the other
//! kernels are compared, as they are with [`copy`](crate::gpu::copy) for the bandwidth.

use crate::gpu::{Kernels, Words};

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[&KERNEL.all()];

/// Number of chains per thread.
const CHAINS: usize = 16;

/// Number of links (multiply-adds) of each chain in a round.
const LINKS: u32 = 8;

crate::kernel! {
    /// Computes `y = Σ c` of 16 chains `c ← a c + b`, which begin at `x` and at each of the 15 sixteenths above it.
    pub KERNEL = "fma" [64], (x) -> (y),
    /// Sizes of a launch, and the two constants of the multiply-add.
    struct Params {
        /// Number of elements of x and y.
        n: usize,
        /// Number of rounds, of 8 links of each chain.
        rounds: u32,
        /// Factor a.
        a: f32,
        /// Addend b.
        b: f32,
    },
    twin |[x], [y], p| {
        for (x, y) in x.floats().iter().zip(y.floats_mut()).take(p.n) {
            // A product of two f32 is exact in f64.
            let link = |c: f32| (f64::from(p.a) * f64::from(c) + f64::from(p.b)) as f32;
            let chain = |j: usize| (0..LINKS * p.rounds).fold(x + j as f32 / CHAINS as f32, |c, _| link(c));
            *y = (0..CHAINS).map(|j| f64::from(chain(j))).sum::<f64>() as f32;
        }
    }
}

impl Params {
    /// The parameters of a launch of `n` threads, with constants by which a chain neither comes to rest nor leaves the range of x.
    pub fn of(n: usize, rounds: u32) -> Self {
        Self {
            n,
            rounds,
            a: -0.999_9,
            b: 1.0,
        }
    }

    /// The number of floating point operations of a launch: two for each link.
    pub fn flops(&self) -> f64 {
        self.n as f64 * f64::from(self.rounds) * f64::from(2 * LINKS) * CHAINS as f64
    }
}
