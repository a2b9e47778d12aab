//! The write of what a rule without a gate of its own has computed (shaders/README.md, "A rule of another crate").

use crate::gpu::noise::{Noise, Writes};
use crate::optim::gate::open;

crate::kernel! {
    /// Replaces `p [n]`, words or packed bf16, by `x [n]`, words or f32, while the gate is open.
    pub KERNEL = "guard_write" [256], (x, gate) -> (mut p),
    /// Length and rounding.
    struct Params {
        /// Number of elements, or of words.
        n: usize,
        /// Source of the rounding of the writes.
        noise: Noise,
    } varying,
    twin twin
}

fn twin([x, gate]: [&[u32]; 2], [p]: [&mut [u32]; 1], s: &Params) {
    if !open(gate) {
        return;
    }
    let writes = Writes::new(s.noise);
    for (i, &x) in x.iter().enumerate().take(s.n) {
        if writes.is_f32() {
            p[i] = x;
        } else {
            writes.parameter(p, i, s.n, None, |_| f32::from_bits(x));
        }
    }
}
