//! Adafactor's update of a vector, in place (shaders/README.md, "Adafactor").

use crate::gpu::Words;
use crate::gpu::noise::Writes;
use crate::optim::adafactor::apply::{Params, scalars};
use crate::optim::arithmetic::{bounded, lane_sum};
use crate::optim::gate::{factor, open};

crate::kernel! {
    /// Updates `p [n]`, f32 or packed bf16, from `g, row [n], sums [2L], noise [n]` (one word where it is not read). Its parameters are those of a
    /// matrix `[n, 1]`.
    pub KERNEL = "adafactor_vector_apply" [64], (g, row, sums, noise, gate) -> (mut p),
    Params,
    twin twin
}

fn twin([g, row, sums, given, gate]: [&[u32]; 5], [p]: [&mut [u32]; 1], s: &Params) {
    if !open(gate) {
        return;
    }
    let (g, row) = (g.floats(), row.floats());
    let (lanes, n) = (s.lanes, s.rows);
    let sums = sums.floats();
    let rms = |k: usize| (lane_sum(sums, k, lanes) / n as f64).sqrt() as f32;
    let (c, rate, d) = scalars(
        rms(0),
        rms(1),
        s.relative_step,
        [s.rate, s.decay, s.d, s.clip, s.eps2],
    );
    let writes = Writes::new(s.noise);
    for i in 0..n {
        let u = (bounded(g[i]) * factor(gate) / row[i].sqrt()) / c;
        writes.parameter(p, i, n, given.get(i), |p| p * d - rate * u);
    }
}
