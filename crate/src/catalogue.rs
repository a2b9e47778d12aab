//! The list of all kernels; `shaders/README.md` describes them.

use crate::gpu::{AnyKernel, copy, fma};
use crate::{ops, optim};

/// Returns every kernel. The stems of `shaders/` are those of these kernels, and `common`.
pub fn catalogue() -> impl Iterator<Item = &'static AnyKernel> {
    let files = [copy::KERNELS, fma::KERNELS]
        .into_iter()
        .chain(ops::KERNELS)
        .chain(optim::KERNELS);
    files.flatten().copied().flatten().copied()
}
