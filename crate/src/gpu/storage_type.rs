//! How the weights of a matrix lie in memory. A product, a lookup or a head is one stem for all of them: the chunk of a storage type, WGSL
//! text between `common.wgsl` and the stem, reads the weights.

use burn::tensor::DType;

use super::{AnyKernel, Kernel, KernelParams};
use crate::formats::blocks::Block;
use crate::formats::{Planes, blocks};

/// How the weights of a matrix lie in memory: as plain elements, or as ggml's blocks in planes of words (shaders/README.md, "Storage
/// types").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StorageType {
    /// One word an element.
    F32,
    /// Two elements in a word, the even one in the low half.
    Bf16,
    /// As [`StorageType::Bf16`], half precision.
    F16,
    /// 32 weights of 8 bits.
    Q8_0,
    /// 32 weights of 4 bits around zero.
    Q4_0,
    /// 256 weights of 4 bits, with a scale and a minimum for each 32.
    Q4K,
    /// 256 weights of 6 bits, with a scale for each 16.
    Q6K,
    /// 32 weights of 4 bits above a minimum.
    Q4_1,
    /// 32 weights of 5 bits around zero.
    Q5_0,
    /// 32 weights of 5 bits above a minimum.
    Q5_1,
    /// 256 weights of 5 bits, with a scale and a minimum for each 32.
    Q5K,
}

/// Number of storage types.
const COUNT: usize = StorageType::ALL.len();

/// What is known of a storage type.
struct Row {
    name: &'static str,
    block: Block,
    planes: Planes,
}

/// `second` are the bytes of a block in the second plane of words; all others are in the first one.
const fn row(name: &'static str, block: Block, second: std::ops::Range<usize>) -> Row {
    Row { name, block, planes: Planes { block: block.bytes, second } }
}

/// The storage types, in their order.
static ROWS: [Row; COUNT] = [
    row("f32", blocks::F32, 0..0),
    row("bf16", blocks::BF16, 0..2),
    row("f16", blocks::F16, 0..2),
    row("q8_0", blocks::Q8_0, 0..2),
    row("q4_0", blocks::Q4_0, 0..2),
    row("q4_k", blocks::Q4_K, 0..0),
    row("q6_k", blocks::Q6_K, 208..210),
    row("q4_1", blocks::Q4_1, 0..4),
    row("q5_0", blocks::Q5_0, 0..2),
    row("q5_1", blocks::Q5_1, 0..4),
    row("q5_k", blocks::Q5_K, 0..0),
];

impl StorageType {
    /// All of them, in the order of a [`Stored`] kernel.
    pub const ALL: [Self; 11] =
        [Self::F32, Self::Bf16, Self::F16, Self::Q8_0, Self::Q4_0, Self::Q4K, Self::Q6K, Self::Q4_1, Self::Q5_0, Self::Q5_1, Self::Q5K];

    /// That of a tensor.
    pub fn of(dtype: DType) -> Self {
        if dtype == DType::BF16 { Self::Bf16 } else { Self::F32 }
    }

    /// That of a ggml type's number, where a device reads the type as it is.
    pub fn of_ggml(id: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|storage| storage.row().block.id == id)
    }

    /// ggml's name, in small letters.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Elements and bytes of a block, which is a single element of the plain types.
    pub fn block(self) -> (usize, usize) {
        (self.row().block.elements, self.row().block.bytes)
    }

    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Words of both planes of so many blocks.
    pub fn words(self, blocks: usize) -> [usize; 2] {
        self.row().planes.words(blocks)
    }

    /// The bytes of both planes of some whole blocks. The second plane of an odd number of blocks may end in half a word.
    pub fn split(self, blocks: &[u8]) -> [Vec<u8>; 2] {
        self.row().planes.split(blocks)
    }

    /// Number of blocks, among whole ones, with a scale that is NaN or infinite: so are all their weights.
    pub fn non_finite_scales(self, blocks: &[u8]) -> u64 {
        let scales: &[usize] = match self {
            Self::F32 | Self::Bf16 => &[],
            Self::F16 | Self::Q8_0 | Self::Q4_0 | Self::Q5_0 => &[0],
            Self::Q4K | Self::Q5K | Self::Q4_1 | Self::Q5_1 => &[0, 2],
            Self::Q6K => &[208],
        };
        let infinite = |block: &[u8]| scales.iter().any(|&at| block[at + 1] & 0x7c == 0x7c);
        blocks.chunks_exact(self.row().block.bytes).filter(|block| infinite(block)).count() as u64
    }

    /// The weights of a matrix as words of f32; where its last word is half empty, one more.
    pub fn decode(self, words: &[u32]) -> Vec<u32> {
        let Row { block, planes, .. } = self.row();
        if self == Self::F32 {
            return words.to_vec();
        }
        let blocks = planes.join(words);
        let mut values = Vec::with_capacity(blocks.len() / block.bytes * block.elements);
        blocks.chunks_exact(block.bytes).for_each(|bytes| (block.decode)(bytes, &mut values));
        values.into_iter().map(f32::to_bits).collect()
    }
}

/// A matrix as it lies in memory: the rows of a file one after another, each of whole blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredMatrix {
    /// How its weights are stored.
    pub storage: StorageType,
    /// Number of rows.
    pub rows: usize,
    /// Weights of a row.
    pub columns: usize,
}

impl StoredMatrix {
    /// A matrix `[rows, columns]`; `None` where a row does not end with a block.
    pub fn new(storage: StorageType, [rows, columns]: [usize; 2]) -> Option<Self> {
        columns.is_multiple_of(storage.block().0).then_some(Self { storage, rows, columns })
    }

    /// Number of its blocks.
    pub fn blocks(self) -> usize {
        self.rows * self.columns / self.storage.block().0
    }

    /// Words on the device.
    pub fn words(self) -> usize {
        self.storage.words(self.blocks()).iter().sum()
    }

    /// The word at which the second plane begins, as the `plane` of a kernel's parameters; 0 for what has one plane.
    pub fn plane(self) -> u32 {
        let [first, second] = self.storage.words(self.blocks());
        // Fewer than 2³² words: a buffer that can be bound.
        if second == 0 { 0 } else { first as u32 }
    }
}

/// What reads the weights of a storage type. It owns binding 0, `w`, or those of several matrices, `w0`, `w1` …
#[derive(Debug)]
pub struct Chunk {
    /// The texts of `shaders/chunks/` that it consists of.
    pub texts: &'static [&'static str],
    /// Number of matrices.
    pub matrices: usize,
    /// How the weights are stored; the twin, which knows no type but f32, sees them decoded.
    pub storage: StorageType,
}

/// Chunks that read one to four weights, in the order of [`StorageType::ALL`].
pub type Chunks<const N: usize = COUNT> = [Chunk; N];

macro_rules! chunks {
    ($($storage:ident = $($text:literal)+,)+) => {
        chunks!(of 1; $($storage = $($text)+,)+)
    };
    (of $matrices:literal; $($storage:ident = $($text:literal)+,)+) => {
        [$(Chunk { texts: &[$(crate::kernel!(@source $text)),+], matrices: $matrices, storage: StorageType::$storage }),+]
    };
}

/// Four neighbours in a row, `weight4(row, i)`: the length of a row is a multiple of 4, `4 k4`.
pub static WEIGHT4: Chunks = chunks! {
    F32 = "chunks/weight4_f32",
    Bf16 = "chunks/weight4_bf16",
    F16 = "chunks/weight4_f16",
    Q8_0 = "chunks/blocks" "chunks/q8_0" "chunks/weight4_blocks",
    Q4_0 = "chunks/blocks" "chunks/q4_0" "chunks/weight4_blocks",
    Q4K = "chunks/blocks" "chunks/runs_k" "chunks/q4_k" "chunks/weight4_blocks",
    Q6K = "chunks/blocks" "chunks/q6_k" "chunks/weight4_blocks",
    Q4_1 = "chunks/blocks" "chunks/q4_1" "chunks/weight4_blocks",
    Q5_0 = "chunks/blocks" "chunks/q5_0" "chunks/weight4_blocks",
    Q5_1 = "chunks/blocks" "chunks/q5_1" "chunks/weight4_blocks",
    Q5K = "chunks/blocks" "chunks/runs_k" "chunks/q5_k" "chunks/weight4_blocks",
};

/// One element of a row, `weight1(row, i)`: the length of a row is any, `k`.
pub static WEIGHT1: Chunks = chunks! {
    F32 = "chunks/weight1_f32",
    Bf16 = "chunks/weight1_bf16",
    F16 = "chunks/weight1_f16",
    Q8_0 = "chunks/blocks" "chunks/q8_0" "chunks/weight1_blocks",
    Q4_0 = "chunks/blocks" "chunks/q4_0" "chunks/weight1_blocks",
    Q4K = "chunks/blocks" "chunks/runs_k" "chunks/q4_k" "chunks/weight1_blocks",
    Q6K = "chunks/blocks" "chunks/q6_k" "chunks/weight1_blocks",
    Q4_1 = "chunks/blocks" "chunks/q4_1" "chunks/weight1_blocks",
    Q5_0 = "chunks/blocks" "chunks/q5_0" "chunks/weight1_blocks",
    Q5_1 = "chunks/blocks" "chunks/q5_1" "chunks/weight1_blocks",
    Q5K = "chunks/blocks" "chunks/runs_k" "chunks/q5_k" "chunks/weight1_blocks",
};

/// [`WEIGHT4`] for the rows of two matrices of the same width in f32 or bf16, one after the other.
pub static TWO4: Chunks<2> = chunks! { of 2; F32 = "chunks/two_f32", Bf16 = "chunks/two_bf16", };

/// [`TWO4`] for three matrices.
pub static THREE4: Chunks<2> = chunks! { of 3; F32 = "chunks/three_f32", Bf16 = "chunks/three_bf16", };

/// A kernel for each storage type of the weights, its first buffers, or for the first `N` types. Its twin is defined on f32: it sees the
/// weights decoded.
#[derive(Debug)]
pub struct Stored<P, const R: usize, const W: usize, const N: usize = COUNT>([Kernel<P, R, W>; N]);

impl<P: KernelParams, const R: usize, const W: usize, const N: usize> Stored<P, R, W, N> {
    /// For [`kernel!`](crate::kernel), which names the kernels, in the order of [`StorageType::ALL`].
    pub const fn new(f32: &Kernel<P, R, W>, names: [&'static str; N], chunks: &'static Chunks<N>) -> Self {
        let mut kernels = [*f32; N];
        let mut i = 0;
        while i < N {
            kernels[i] = f32.with_chunk(names[i], &chunks[i]);
            i += 1;
        }
        Self(kernels)
    }

    /// The same with another shader.
    pub const fn variant(&self, names: [&'static str; N], source: &'static str) -> Self {
        let mut kernels = self.0;
        let mut i = 0;
        while i < N {
            kernels[i] = kernels[i].variant(names[i], source);
            i += 1;
        }
        Self(kernels)
    }

    /// The same with an entry point that stems share.
    pub const fn with_entry(&self, entry: &'static str) -> Self {
        let mut kernels = self.0;
        let mut i = 0;
        while i < N {
            kernels[i] = kernels[i].with_entry(entry);
            i += 1;
        }
        Self(kernels)
    }

    /// The same with workgroups of another size.
    pub const fn in_groups_of(&self, workgroup: u32) -> Self {
        let mut kernels = self.0;
        let mut i = 0;
        while i < N {
            kernels[i] = kernels[i].in_groups_of(workgroup);
            i += 1;
        }
        Self(kernels)
    }

    /// The kernel for weights of a storage type, one of the `N`.
    pub const fn of(&self, storage: StorageType) -> &Kernel<P, R, W> {
        &self.0[storage as usize]
    }

    /// All of them, without their types.
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
