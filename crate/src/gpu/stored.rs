//! Kernels that read weights, one for each storage type of the weights.

use super::storage_type::COUNT;
use super::{AnyKernel, Chunks, Kernel, KernelParams, StorageType};

/// A kernel for each of the first `N` storage types of its weights, by default for all of them. The weights are its first buffers. Its twin is
/// defined on f32 and sees the weights decoded.
#[derive(Debug)]
pub struct Stored<P, const R: usize, const W: usize, const N: usize = COUNT>([Kernel<P, R, W>; N]);

/// Changes each of an array of kernels, in a constant.
macro_rules! each {
    ($kernels:expr, |$kernel:ident, $i:ident| $changed:expr) => {{
        let mut kernels = $kernels;
        let mut $i = 0;
        while $i < N {
            let $kernel = kernels[$i];
            kernels[$i] = $changed;
            $i += 1;
        }
        Self(kernels)
    }};
}

impl<P: KernelParams, const R: usize, const W: usize, const N: usize> Stored<P, R, W, N> {
    /// Makes the kernels. For [`kernel!`](crate::kernel), which names them in the order of [`StorageType::ALL`].
    pub const fn new(
        f32: &Kernel<P, R, W>,
        names: [&'static str; N],
        chunks: &'static Chunks<N>,
    ) -> Self {
        each!([*f32; N], |kernel, i| kernel
            .with_chunk(names[i], &chunks[i]))
    }

    /// The same kernels with another shader.
    pub const fn variant(&self, names: [&'static str; N], source: &'static str) -> Self {
        each!(self.0, |kernel, i| kernel.variant(names[i], source))
    }

    /// The same kernels with an entry point that stems share.
    pub const fn with_entry(&self, entry: &'static str) -> Self {
        each!(self.0, |kernel, i| kernel.with_entry(entry))
    }

    /// The same kernels with workgroups of another size.
    pub const fn in_groups_of(&self, workgroup: u32) -> Self {
        each!(self.0, |kernel, i| kernel.in_groups_of(workgroup))
    }

    /// The kernel for weights of a storage type, which must be one of the `N`.
    pub const fn of(&self, storage: StorageType) -> &Kernel<P, R, W> {
        &self.0[storage as usize]
    }

    /// Returns all kernels, without their types.
    pub const fn all(&self) -> [&AnyKernel; N] {
        let mut kernels = [self.0[0].any(); N];
        let mut i = 0;
        while i < N {
            kernels[i] = self.0[i].any();
            i += 1;
        }
        kernels
    }
}
