//! Σg² of a gradient by blocks of 256 (shaders/README.md, "Block tree"), the first stage of the global norm.

use super::kernel::{Kernel, Words, read, update};
use super::noise::bounded;

crate::kernel_params! {
    /// The gradient's length and its place among the partials.
    pub struct Params {
        /// Elements.
        n: u32,
        /// Index of this gradient's first partial.
        first: u32,
    }
}

/// `g [n] → partials [first … first + ⌈n/256⌉]`, f32; the other partials stay.
pub static KERNEL: Kernel = Kernel {
    name: "global_norm",
    source: include_str!("../../../shaders/global_norm.wgsl"),
    bindings: &[read("g"), update("partials")],
    params: Params::FIELDS,
    workgroup: 64,
    twin,
};

/// Elements of one workgroup.
pub const ELEMENTS: usize = 2048;

fn twin(buffers: &mut [Words<'_>], params: &[u32]) {
    let s = Params::from_words(params);
    let [g, partials] = buffers else { return };
    let partials = partials.floats_mut().iter_mut().skip(s.first as usize);
    for (block, out) in g.floats()[..s.n as usize].chunks(256).zip(partials) {
        *out = block.iter().map(|&g| f64::from(bounded(g)).powi(2)).sum::<f64>() as f32;
    }
}
