//! Adafactor's second moment of a vector, and the sums behind the update's size (shaders/README.md, "Adafactor").

use crate::gpu::Words;
use crate::optim::arithmetic::{bounded, lerp, value};
use crate::optim::gate::{factor, open};

/// Number of elements of a chunk, the unit of work of a lane.
pub const CHUNK: usize = 2048;

crate::kernel! {
    /// Updates `row [n]` and computes `g [n], p [n], row [n] → sums [2L]`.
    pub KERNEL = "adafactor_vector_moments" [64], (g, p, gate) -> (mut row, sums),
    /// Length of the vector, and the scalars of a step.
    struct Params {
        /// Number of elements.
        n: usize,
        /// L = min(256, chunks), the number of workgroups.
        lanes: usize,
        /// ε₁.
        eps1: f32,
        /// w = max(t^decay_rate, 1 − beta2_cap).
        w: f32,
        /// 1: Σ p² is needed.
        relative_step: bool,
        /// 1: p is packed bf16.
        packed: bool,
    } varying,
    twin twin
}

fn twin([g, p, gate]: [&[u32]; 3], [row, sums]: [&mut [u32]; 2], s: &Params) {
    let (g, row) = (g.floats(), row.floats_mut());
    let lanes = s.lanes;
    let mut total = vec![0f64; 2 * lanes];
    for i in 0..s.n {
        let g = bounded(g[i]) * factor(gate);
        let moment = lerp(row[i], g * g + s.eps1, s.w);
        if open(gate) {
            row[i] = moment;
        }
        let lane = i / CHUNK % lanes;
        total[lane] += f64::from(g / moment.sqrt()).powi(2);
        if s.relative_step {
            total[lanes + lane] += f64::from(value(p, i, s.packed)).powi(2);
        }
    }
    for (out, sum) in sums.floats_mut().iter_mut().zip(total) {
        *out = sum as f32;
    }
}
