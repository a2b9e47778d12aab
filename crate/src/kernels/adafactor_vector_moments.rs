//! Adafactor's second moment of a vector, and the sums behind the update's size (shaders/README.md, "Adafactor").

use super::kernel::{Kernel, Words, read, update, write};
use super::noise::{bounded, lerp};
use super::packed::get;

/// Elements of a chunk: a lane's unit of work.
pub const CHUNK: usize = 2048;

crate::kernel_params! {
    /// The vector and the scalars of a step.
    pub struct Params {
        /// Elements.
        n: u32,
        /// L = min(256, chunks): workgroups.
        lanes: u32,
        /// Factor of the gradient (clipping).
        scale: f32,
        /// ε₁.
        eps1: f32,
        /// max(t^decay_rate, 1 − beta2_cap).
        w: f32,
        /// 1: Σ p² is needed.
        relative_step: u32,
        /// 1: p is packed bf16.
        packed: u32,
    }
}

/// `g [n], p [n], row [n] → sums [2L]`.
pub static KERNEL: Kernel = Kernel {
    name: "adafactor_vector_moments",
    source: include_str!("../../../shaders/adafactor_vector_moments.wgsl"),
    bindings: &[read("g"), read("p"), update("row"), write("sums")],
    params: Params::FIELDS,
    workgroup: 64,
    twin,
};

fn twin(buffers: &mut [Words<'_>], params: &[u32]) {
    let s = Params::from_words(params);
    let [g, p, row, sums] = buffers else { return };
    let (g, p, row) = (g.floats(), p.words(), row.floats_mut());
    let lanes = s.lanes as usize;
    let mut total = vec![0f64; 2 * lanes];
    for i in 0..s.n as usize {
        let g = bounded(g[i]) * s.scale;
        row[i] = lerp(row[i], g * g + s.eps1, s.w);
        let lane = i / CHUNK % lanes;
        total[lane] += f64::from(g / row[i].sqrt()).powi(2);
        if s.relative_step != 0 {
            let x = if s.packed != 0 { get(p, i) } else { f32::from_bits(p[i]) };
            total[lanes + lane] += f64::from(x).powi(2);
        }
    }
    for (out, sum) in sums.floats_mut().iter_mut().zip(total) {
        *out = sum as f32;
    }
}
