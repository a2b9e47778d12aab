//! How the weights of a matrix lie in memory. A product, a lookup or a head is one stem for all of them: the chunk of a storage type, WGSL
//! text between `common.wgsl` and the stem, reads the weights.

use burn::tensor::DType;

use crate::gpu::{AnyKernel, Kernel, KernelParams};

/// How the weights of a matrix lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageType {
    /// One word an element.
    F32,
    /// Two elements in a word, the even one in the low half.
    Bf16,
}

impl StorageType {
    /// All of them, in the order of a [`Stored`] kernel.
    pub const ALL: [Self; 2] = [Self::F32, Self::Bf16];

    /// That of a tensor.
    pub fn of(dtype: DType) -> Self {
        if dtype == DType::BF16 { Self::Bf16 } else { Self::F32 }
    }
}

/// The text that reads the weights of a storage type. It owns binding 0, `w`.
#[derive(Debug)]
pub struct Chunk {
    /// Stem of the text in `shaders/chunks/`.
    pub name: &'static str,
    /// The text.
    pub text: &'static str,
    /// The weights as words of f32, for the twin, which knows no other.
    pub decode: fn(&[u32]) -> Vec<u32>,
}

/// Chunks that read one to four weights, in the order of [`StorageType::ALL`].
pub type Chunks = [Chunk; StorageType::ALL.len()];

/// Four neighbours in a row, `weight4(row, i)`: the length of a row is a multiple of 4, `4 k4`.
pub static WEIGHT4: Chunks = [
    Chunk { name: "weight4_f32", text: crate::kernel!(@source "chunks/weight4_f32"), decode: <[u32]>::to_vec },
    Chunk { name: "weight4_bf16", text: crate::kernel!(@source "chunks/weight4_bf16"), decode: widen_bf16 },
];

/// One element of a row, `weight1(row, i)`: the length of a row is any, `k`.
pub static WEIGHT1: Chunks = [
    Chunk { name: "weight1_f32", text: crate::kernel!(@source "chunks/weight1_f32"), decode: <[u32]>::to_vec },
    Chunk { name: "weight1_bf16", text: crate::kernel!(@source "chunks/weight1_bf16"), decode: widen_bf16 },
];

fn widen_bf16(words: &[u32]) -> Vec<u32> {
    words.iter().flat_map(|word| [word << 16, word & 0xffff_0000]).collect()
}

/// A kernel for each storage type of the weights, its first buffer. Its twin is defined on f32: it sees the weights decoded.
#[derive(Debug)]
pub struct Stored<P, const R: usize, const W: usize>([Kernel<P, R, W>; StorageType::ALL.len()]);

impl<P: KernelParams, const R: usize, const W: usize> Stored<P, R, W> {
    /// For [`kernel!`](crate::kernel), which names the kernels.
    pub const fn new(f32: &Kernel<P, R, W>, names: [&'static str; StorageType::ALL.len()], chunks: &'static Chunks) -> Self {
        Self([f32.with_chunk(names[0], &chunks[0]), f32.with_chunk(names[1], &chunks[1])])
    }

    /// The same with another shader.
    pub const fn variant(&self, names: [&'static str; StorageType::ALL.len()], source: &'static str) -> Self {
        let [f32, bf16] = &self.0;
        Self([f32.variant(names[0], source), bf16.variant(names[1], source)])
    }

    /// The same with workgroups of another size.
    pub const fn in_groups_of(&self, workgroup: u32) -> Self {
        let [f32, bf16] = &self.0;
        Self([f32.in_groups_of(workgroup), bf16.in_groups_of(workgroup)])
    }

    /// The kernel for weights of a storage type.
    pub const fn of(&self, storage: StorageType) -> &Kernel<P, R, W> {
        &self.0[storage as usize]
    }

    /// All of them, without their types.
    pub const fn all(&self) -> [&AnyKernel; StorageType::ALL.len()] {
        [self.0[0].any(), self.0[1].any()]
    }
}
