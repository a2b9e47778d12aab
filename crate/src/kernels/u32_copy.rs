//! `y[y_start ..] = x[x_start ..]`, word for word: the copy for tensors whose dtype the compiler does not know (packed bf16), and for parts of
//! tensors that go to the device and back piece by piece.

use super::kernel::{Kernel, Words, read, update};

crate::kernel_params! {
    /// Words to copy.
    pub struct Params {
        /// Number of words.
        n: u32,
        /// First word of x.
        x_start: u32,
        /// First word of y.
        y_start: u32,
    }
}

impl Params {
    /// The first `n` words.
    pub fn whole(n: u32) -> Self {
        Self { n, x_start: 0, y_start: 0 }
    }
}

/// `x [x_start .. x_start + n] → y [y_start .. y_start + n]`; the rest of y stays.
pub static KERNEL: Kernel = Kernel {
    name: "u32_copy",
    source: include_str!("../../../shaders/u32_copy.wgsl"),
    bindings: &[read("x"), update("y")],
    params: Params::FIELDS,
    workgroup: 256,
    twin,
};

fn twin(buffers: &mut [Words<'_>], params: &[u32]) {
    let Params { n, x_start, y_start } = Params::from_words(params);
    let [x, y] = buffers else { return };
    for i in 0..n as usize {
        y.words_mut()[y_start as usize + i] = x.words()[x_start as usize + i];
    }
}
