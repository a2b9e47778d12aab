//! The types in which tensors are written: their words, their sizes, and the choice of the type for a tensor.

use super::encoding::Encoding;
use crate::formats::GgmlType;

/// A type in which a tensor of a GGUF file can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TensorType {
    /// f32, as computed.
    F32,
    /// IEEE half precision.
    F16,
    /// The upper half of an f32.
    Bf16,
    /// 32 values of 8 bits.
    Q8_0,
    /// 256 values of 4 bits, with a scale and a minimum for each 32.
    Q4K,
    /// 256 values of 6 bits, with a scale for each 16.
    Q6K,
    /// 32 values of 4 bits around zero.
    Q4_0,
    /// 32 values of 4 bits above a minimum.
    Q4_1,
    /// 32 values of 5 bits around zero.
    Q5_0,
    /// 32 values of 5 bits above a minimum.
    Q5_1,
}

impl TensorType {
    /// All types.
    pub const ALL: [Self; 10] = [
        Self::F32,
        Self::F16,
        Self::Bf16,
        Self::Q8_0,
        Self::Q4K,
        Self::Q6K,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
    ];

    /// Its word in settings and receipts, and its number in ggml.
    fn row(self) -> (&'static str, u32) {
        match self {
            Self::F32 => ("f32", 0),
            Self::F16 => ("f16", 1),
            Self::Bf16 => ("bf16", 30),
            Self::Q8_0 => ("q8_0", 8),
            Self::Q4K => ("q4_k", 12),
            Self::Q6K => ("q6_k", 14),
            Self::Q4_0 => ("q4_0", 2),
            Self::Q4_1 => ("q4_1", 3),
            Self::Q5_0 => ("q5_0", 6),
            Self::Q5_1 => ("q5_1", 7),
        }
    }

    /// The word for it in settings and receipts.
    pub fn word(self) -> &'static str {
        self.row().0
    }

    /// The type with this word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }

    /// The type of a tensor in a file; `None` for types that are read but never written.
    pub fn of_ggml(ggml_type: GgmlType) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.ggml() == ggml_type)
    }

    /// The same type as ggml's type; its `id` is the number in a file.
    pub fn ggml(self) -> GgmlType {
        GgmlType::from_id(self.row().1)
    }

    /// Elements and bytes of a block; a plain type has blocks of one element.
    pub fn block(self) -> (u64, u64) {
        self.ggml()
            .block
            .expect("a type that is written has a size")
    }

    /// Number of bytes of a row of `width` elements; `None` if `width` is no whole number of blocks, or the size exceeds u64.
    pub fn row_bytes(self, width: u64) -> Option<u64> {
        let (elements, bytes) = self.block();
        let blocks = width / elements;
        blocks
            .checked_mul(bytes)
            .filter(|_| width.is_multiple_of(elements))
    }

    /// The type that rows of `width` elements get where this one was requested. Rows that are no whole number of its blocks fall back
    /// as in llama.cpp: Q4_K to Q5_0, Q6_K to Q8_0, and rows that do not fit these either to F16.
    pub fn for_width(self, width: u64) -> Self {
        let divides = |one: Self| width.is_multiple_of(one.block().0);
        let smaller = match self {
            Self::Q4K => Self::Q5_0,
            Self::Q6K => Self::Q8_0,
            _ => Self::F16,
        };
        [self, smaller]
            .into_iter()
            .find(|one| divides(*one))
            .unwrap_or(Self::F16)
    }

    /// Appends the values of whole blocks.
    pub fn decode(self, bytes: &[u8], out: &mut Vec<f32>) {
        Encoding::of_ggml(self.ggml())
            .expect("a type that is written can be read")
            .decode(bytes, out);
    }
}
