//! Scaling of a tensor, `x ← f x`, with the factor on the device or as a number.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;

use crate::gpu::launch::Launch;
use crate::gpu::{Kernels, Words, groups_of_64};
use crate::ops::operation::operation;
use crate::ops::tape::{Grads, Sum, Vjp};

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[&KERNEL.all(), &BY_NUMBER.all()];

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

crate::kernel! {
    /// Computes `x [n] ← f · x`.
    pub BY_NUMBER = "scale_by_number" [64], () -> (mut x),
    /// The elements to scale, and their factor.
    struct NumberParams {
        /// Number of elements.
        n: usize,
        /// Factor of the elements.
        factor: f32,
    },
    twin |[], [x], p| {
        x.floats_mut()[..p.n].iter_mut().for_each(|x| *x *= p.factor);
    }
}

/// Computes `f [1] · x` for x of any shape, in place of x if it is uniquely owned.
pub fn scale<B: Launch>(x: FloatTensor<B>, f: FloatTensor<B>) -> FloatTensor<B> {
    let n = x.shape().num_elements();
    let [x] = B::launch(&KERNEL, [f], [x], &Params { n }, groups_of_64(n));
    x
}

/// Computes `factor · x` for x of any shape, in place of x if it is uniquely owned.
fn by_number<B: Launch>(x: FloatTensor<B>, factor: f32) -> FloatTensor<B> {
    let n = x.shape().num_elements();
    let params = NumberParams { n, factor };
    let [x] = B::launch(&BY_NUMBER, [], [x], &params, groups_of_64(n));
    x
}

/// The backward pass of a scaling by a number.
#[derive(Debug, Clone)]
struct Scaled {
    factor: f32,
}

impl<B: Launch> Vjp<B, 1> for Scaled {
    fn backward(self, dy: FloatTensor<B>, _needs: [bool; 1], _: Sum<'_, B>) -> Grads<B, 1> {
        [Some(by_number::<B>(dy, self.factor))]
    }
}

operation! {
    /// Computes `factor · x`, in place of x if it is uniquely owned.
    pub fn scaled(x: Tensor<2>; factor: f64) -> Tensor<2> {
        let ([x], nodes) = B::parts([x]);
        let factor = factor as f32;
        let y = by_number::<B::Inner>(x, factor);
        B::record(nodes, y, Scaled { factor })
    }
}
