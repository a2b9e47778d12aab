//! Scaling of a tensor, `x ← f x`, with the factor on the device.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;

use crate::gpu::launch::Launch;
use crate::gpu::{Kernels, Words, groups_of_64};

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[&KERNEL.all()];

crate::kernel! {
    /// Computes `x [n] ← f [1] · x`.
    pub KERNEL = "scale" [64], (f) -> (mut x),
    /// The elements to scale.
    struct Params {
        /// Number of elements.
        n: usize,
    },
    twin |[f], [x], p| {
        let factor = f.floats()[0];
        x.floats_mut()[..p.n].iter_mut().for_each(|x| *x *= factor);
    }
}

/// Computes `f [1] · x` for x of any shape, in place of x if it is uniquely owned.
pub fn scale<B: Launch>(x: FloatTensor<B>, f: FloatTensor<B>) -> FloatTensor<B> {
    let n = x.shape().num_elements();
    let [x] = B::launch(&KERNEL, [f], [x], &Params { n }, groups_of_64(n));
    x
}
