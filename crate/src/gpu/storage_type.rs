//! Storage types: the layout of a matrix's weights in memory. A product, a lookup or a head is one stem for all of them: the weights are read by
//! the chunk of the storage type, WGSL text between `common.wgsl` and the stem.

use burn::tensor::DType;

use crate::formats::blocks::Block;
use crate::formats::{Planes, blocks};

/// The layout of a matrix's weights in memory: plain elements, or ggml's blocks in planes of words (shaders/README.md, "Storage types").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StorageType {
    /// One word per element.
    F32,
    /// Two elements per word, the even one in the low half.
    Bf16,
    /// As [`StorageType::Bf16`], but in half precision.
    F16,
    /// Blocks of 32 weights of 8 bits.
    Q8_0,
    /// Blocks of 32 weights of 4 bits around zero.
    Q4_0,
    /// Blocks of 256 weights of 4 bits, with a scale and a minimum for each 32.
    Q4K,
    /// Blocks of 256 weights of 6 bits, with a scale for each 16.
    Q6K,
    /// Blocks of 32 weights of 4 bits above a minimum.
    Q4_1,
    /// Blocks of 32 weights of 5 bits around zero.
    Q5_0,
    /// Blocks of 32 weights of 5 bits above a minimum.
    Q5_1,
    /// Blocks of 256 weights of 5 bits, with a scale and a minimum for each 32.
    Q5K,
}

/// Number of storage types.
pub(super) const COUNT: usize = StorageType::ALL.len();

/// The properties of a storage type.
struct Row {
    name: &'static str,
    block: Block,
    planes: Planes,
}

/// Makes a row; `second` is the range of a block's bytes that lie in the second plane of words, all others lie in the first one.
const fn row(name: &'static str, block: Block, second: std::ops::Range<usize>) -> Row {
    Row {
        name,
        block,
        planes: Planes {
            block: block.bytes,
            second,
        },
    }
}

/// The rows of the storage types, in the order of the enum.
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
    /// All storage types, in the order of the kernels of a [`Stored`](crate::gpu::Stored).
    pub const ALL: [Self; 11] = [
        Self::F32,
        Self::Bf16,
        Self::F16,
        Self::Q8_0,
        Self::Q4_0,
        Self::Q4K,
        Self::Q6K,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q5K,
    ];

    /// The storage type of a tensor of this dtype.
    pub fn of(dtype: DType) -> Self {
        if dtype == DType::BF16 {
            Self::Bf16
        } else {
            Self::F32
        }
    }

    /// The storage type of a ggml type by its number, or `None` if a device cannot read that type as it is.
    pub fn of_ggml(id: u32) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|storage| storage.row().block.id == id)
    }

    /// Returns ggml's name of the type, in lower case.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The number of elements and of bytes of a block; a block of a plain type is a single element.
    pub fn block(self) -> (usize, usize) {
        (self.row().block.elements, self.row().block.bytes)
    }

    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// The number of words of each plane of `blocks` blocks.
    pub fn words(self, blocks: usize) -> [usize; 2] {
        self.row().planes.words(blocks)
    }

    /// Splits whole blocks into the bytes of both planes. The second plane of an odd number of blocks may end in half a word.
    pub fn split(self, blocks: &[u8]) -> [Vec<u8>; 2] {
        self.row().planes.split(blocks)
    }

    /// Counts the blocks, among whole ones, with a scale that is NaN or infinite: so are all their weights.
    pub(crate) fn non_finite_scales(self, blocks: &[u8]) -> u64 {
        let scales: &[usize] = match self {
            Self::F32 | Self::Bf16 => &[],
            Self::F16 | Self::Q8_0 | Self::Q4_0 | Self::Q5_0 => &[0],
            Self::Q4K | Self::Q5K | Self::Q4_1 | Self::Q5_1 => &[0, 2],
            Self::Q6K => &[208],
        };
        let infinite = |block: &[u8]| scales.iter().any(|&at| block[at + 1] & 0x7c == 0x7c);
        blocks
            .chunks_exact(self.row().block.bytes)
            .filter(|block| infinite(block))
            .count() as u64
    }

    /// Decodes the weights of a matrix into words of f32; where its last word is half empty, there is one weight more.
    pub fn decode(self, words: &[u32]) -> Vec<u32> {
        let Row { block, planes, .. } = self.row();
        if self == Self::F32 {
            return words.to_vec();
        }
        let blocks = planes.join(words);
        let mut values = Vec::with_capacity(blocks.len() / block.bytes * block.elements);
        blocks
            .chunks_exact(block.bytes)
            .for_each(|bytes| (block.decode)(bytes, &mut values));
        values.into_iter().map(f32::to_bits).collect()
    }
}

/// A matrix in memory: the rows of a file one after another, each of whole blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredMatrix {
    /// Storage type of its weights.
    pub storage: StorageType,
    /// Number of rows.
    pub rows: usize,
    /// Number of weights in a row.
    pub columns: usize,
}

impl StoredMatrix {
    /// Describes a matrix `[rows, columns]`; `None` where a row does not end with a block.
    pub fn new(storage: StorageType, [rows, columns]: [usize; 2]) -> Option<Self> {
        columns.is_multiple_of(storage.block().0).then_some(Self {
            storage,
            rows,
            columns,
        })
    }

    /// The number of its blocks.
    pub fn blocks(self) -> usize {
        self.rows * self.columns / self.storage.block().0
    }

    /// The number of its words on the device.
    pub fn words(self) -> usize {
        self.storage.words(self.blocks()).iter().sum()
    }

    /// The index of the word at which the second plane begins, the `plane` of a kernel's parameters; 0 where there is one plane.
    pub fn plane(self) -> usize {
        let [first, second] = self.storage.words(self.blocks());
        if second == 0 { 0 } else { first }
    }
}

/// The WGSL that reads the weights of a storage type. It owns binding 0, `w`, or the bindings of several matrices, `w0`, `w1` …
#[derive(Debug)]
pub struct Chunk {
    /// The texts of `shaders/chunks/` that it consists of.
    pub texts: &'static [&'static str],
    /// Number of matrices.
    pub matrices: usize,
    /// Storage type of the weights; the twin, which knows only f32, sees them decoded.
    pub storage: StorageType,
}

/// The chunks of one reading function, one for each of the first `N` storage types in the order of [`StorageType::ALL`].
pub type Chunks<const N: usize = COUNT> = [Chunk; N];

macro_rules! chunks {
    ($($storage:ident = $($text:literal)+,)+) => {
        chunks!(of 1; $($storage = $($text)+,)+)
    };
    (of $matrices:literal; $($storage:ident = $($text:literal)+,)+) => {
        [$(Chunk { texts: &[$(crate::kernel!(@source $text)),+], matrices: $matrices, storage: StorageType::$storage }),+]
    };
}

/// Chunks that read four neighbours in a row, `weight4(row, i)`: the length of a row is a multiple of 4, `4 k4`.
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

/// Chunks that read one element of a row, `weight1(row, i)`: a row may have any length, `k`.
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

/// As [`WEIGHT4`], for the rows of two matrices of the same width in f32 or bf16, one after the other.
pub static TWO4: Chunks<2> = chunks! { of 2; F32 = "chunks/two_f32", Bf16 = "chunks/two_bf16", };

/// As [`TWO4`], for three matrices.
pub static THREE4: Chunks<2> =
    chunks! { of 3; F32 = "chunks/three_f32", Bf16 = "chunks/three_bf16", };
