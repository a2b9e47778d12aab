//! The residual stream: the sum of two tensors, in place.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;

use crate::gpu::launch::Launch;
use crate::gpu::{Kernels, Words, groups_of_64};

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[&RESIDUAL_ADD.all()];

crate::kernel! {
    /// Computes `x ← x + y`.
    pub RESIDUAL_ADD = "residual_add" [64], (y) -> (mut x),
    /// The elements of a sum.
    struct Params {
        /// Number of elements.
        n: usize,
    },
    twin |[y], [x], p| {
        for i in 0..p.n {
            x.floats_mut()[i] += y.floats()[i];
        }
    }
}

/// Computes `x + y`, both of any one shape, in place of one of them if it is uniquely owned.
pub fn residual_add<B: Launch>(x: FloatTensor<B>, y: FloatTensor<B>) -> FloatTensor<B> {
    let (x, y) = if x.can_mut() || !y.can_mut() {
        (x, y)
    } else {
        (y, x)
    };
    let n = x.shape().num_elements();
    let [x] = B::launch(&RESIDUAL_ADD, [y], [x], &Params { n }, groups_of_64(n));
    x
}

/// Computes `sum + x`, or x where nothing was summed before.
pub(crate) fn added<B: Launch>(x: FloatTensor<B>, sum: Option<FloatTensor<B>>) -> FloatTensor<B> {
    match sum {
        Some(sum) => residual_add::<B>(sum, x),
        None => x,
    }
}
