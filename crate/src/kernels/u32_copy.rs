//! `y = x`, word for word: the copy for tensors whose dtype the compiler does not know (packed bf16).

use super::kernel::{Kernel, Words, read, write};

crate::kernel_params! {
    /// Words to copy.
    pub struct Params {
        /// Number of words.
        n: u32,
    }
}

/// `x [n] → y [n]`.
pub static KERNEL: Kernel = Kernel {
    name: "u32_copy",
    source: include_str!("../../../shaders/u32_copy.wgsl"),
    bindings: &[read("x"), write("y")],
    params: Params::FIELDS,
    workgroup: 256,
    twin,
};

fn twin(buffers: &mut [Words<'_>], params: &[u32]) {
    let n = Params::from_words(params).n as usize;
    let [x, y] = buffers else { return };
    y.words_mut()[..n].copy_from_slice(&x.words()[..n]);
}
