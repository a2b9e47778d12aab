//! Adafactor's update of a matrix, in place: relative step, clip by RMS, decoupled decay (shaders/README.md, "Adafactor").

use crate::gpu::Words;
use crate::gpu::noise::{Noise, Writes};
use crate::optim::arithmetic::{bounded, lane_sum};
use crate::optim::gate::{factor, open};

crate::kernel! {
    /// Updates `p [A, B]`, f32 or packed bf16, from `g [A, B], row [A], col [B], sums [3L], noise [N]` (one word where it is not read).
    pub KERNEL = "adafactor_apply" [64], (g, row, col, sums, noise, gate) -> (mut p),
    /// Scalars of a step and its noise.
    struct Params {
        /// A, the number of rows.
        rows: usize,
        /// B, the number of columns.
        cols: usize,
        /// L, the number of workgroups of `adafactor_norm`.
        lanes: usize,
        /// η, the learning rate.
        rate: f32,
        /// λ, the weight decay, for the relative step.
        decay: f32,
        /// 1 − ηλ.
        d: f32,
        /// The setting `clip_threshold`.
        clip: f32,
        /// ε₂.
        eps2: f32,
        /// 1: η is multiplied by max(ε₂, RMS of p).
        relative_step: bool,
        /// Source of the rounding of the writes.
        noise: Noise,
    } varying,
    twin twin
}

/// Number of pairs of elements per workgroup.
pub const PAIRS: usize = 2048;

/// The maximum, except that NaN stays NaN.
fn at_least(x: f32, least: f32) -> f32 {
    if x.is_nan() { x } else { x.max(least) }
}

/// Returns c, η, d of a step with these RMS values of u and p.
pub(crate) fn scalars(
    rms_u: f32,
    rms_p: f32,
    relative_step: bool,
    [rate, decay, d, clip, eps2]: [f32; 5],
) -> (f32, f32, f32) {
    let c = at_least(rms_u / clip, 1.0);
    if !relative_step {
        return (c, rate, d);
    }
    let rate = at_least(rms_p, eps2) * rate;
    (c, rate, 1.0 - rate * decay)
}

/// Returns 1/√(row/S). A row with tiny gradients next to one of 1e15 would leave f32's normal range: then the quotient of the roots is used.
fn row_factor(row: f32, total: f32) -> f32 {
    let share = row / total;
    if share < f32::MIN_POSITIVE {
        total.sqrt() / row.sqrt()
    } else {
        1.0 / share.sqrt()
    }
}

fn twin([g, row, col, sums, given, gate]: [&[u32]; 6], [p]: [&mut [u32]; 1], s: &Params) {
    if !open(gate) {
        return;
    }
    let (g, row, col) = (g.floats(), row.floats(), col.floats());
    let (lanes, sums) = (s.lanes, sums.floats());
    let sum = |k: usize| lane_sum(sums, k, lanes);
    let (cols, n) = (s.cols, s.rows * s.cols);
    let total = sum(2) as f32;
    let rms_u = (sum(2) * sum(0) / n as f64).sqrt() as f32;
    let rms_p = (sum(1) / n as f64).sqrt() as f32;
    let (c, rate, d) = scalars(
        rms_u,
        rms_p,
        s.relative_step,
        [s.rate, s.decay, s.d, s.clip, s.eps2],
    );
    let writes = Writes::new(s.noise);
    for i in 0..n {
        let u = ((bounded(g[i]) * factor(gate) * row_factor(row[i / cols], total))
            * (1.0 / col[i % cols].sqrt()))
            / c;
        writes.parameter(p, i, n, given.get(i), |p| p * d - rate * u);
    }
}
