//! `x ← f x` with the factor on the device.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;

use super::kernel::{groups_of_64, read, update};
use super::launch::Launch;
use crate::{kernel_params, kernel_record};

kernel_params! {
    /// Elements to scale.
    pub struct Params {
        /// Number of elements.
        n: u32,
    }
}

kernel_record! {
    /// `x [n] ← f [1] · x`
    KERNEL, "scale" in "../../../shaders/", [update("x"), read("f")], Params, |buffers, params| {
        let n = Params::from_words(params).n as usize;
        let [x, f] = buffers else { return };
        let factor = f.floats()[0];
        x.floats_mut()[..n].iter_mut().for_each(|x| *x *= factor);
    }
}

/// `f [1] · x`, in place of x if it is uniquely owned.
pub fn scale<B: Launch>(x: FloatTensor<B>, f: FloatTensor<B>) -> FloatTensor<B> {
    let n = x.shape().num_elements();
    B::one(&KERNEL, vec![x, f], &Params { n: n as u32 }.words(), groups_of_64(n))
}
