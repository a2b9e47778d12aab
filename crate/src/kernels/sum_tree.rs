//! Sums of 65,536 values each by the block tree (shaders/README.md, "Block tree").

use super::kernel::{Kernel, Words, read, write};

crate::kernel_params! {
    /// The sequence.
    pub struct Params {
        /// Values.
        n: u32,
    }
}

/// `x [n] → y [⌈n/65536⌉]`, f32.
pub static KERNEL: Kernel = Kernel {
    name: "sum_tree",
    source: include_str!("../../../shaders/sum_tree.wgsl"),
    bindings: &[read("x"), write("y")],
    params: Params::FIELDS,
    workgroup: 64,
    twin,
};

/// Values of one workgroup.
pub const VALUES: usize = 65_536;

fn twin(buffers: &mut [Words<'_>], params: &[u32]) {
    let s = Params::from_words(params);
    let [x, y] = buffers else { return };
    for (part, out) in x.floats()[..s.n as usize].chunks(VALUES).zip(y.floats_mut()) {
        *out = part.iter().map(|&x| f64::from(x)).sum::<f64>() as f32;
    }
}
