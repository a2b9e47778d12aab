//! Decodes ggml's quantized blocks to f32. All arithmetic is f32 in the order written, so every value equals that of ggml's own
//! `dequantize_row_*` bit for bit.

mod bits;
mod code_books;
mod encode;
mod encoding;
mod k;
mod linear;
mod planes;
mod tables;
mod tensor_type;

pub use encode::Encoder;
pub(crate) use encoding::{Encoding, count_non_finite, unreadable};
pub(crate) use planes::Planes;
pub use tensor_type::TensorType;

use half::bf16;

use super::gguf::GgmlType;
use code_books::{iq1_m, iq1_s, iq2_s, iq2_xs, iq2_xxs, iq3_s, iq3_xxs};
use k::{q2_k, q3_k, q4_k, q5_k, q6_k};
use linear::{q1_0, q2_0, q4_0, q4_1, q5_0, q5_1, q8_0, tq1_0, tq2_0};
use tables::{iq4_nl, iq4_xs, mxfp4, nvfp4};

/// One block format: its sizes in elements and bytes, and the function that decodes one block and appends its values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    /// Number of the type in ggml.
    pub(crate) id: u32,
    pub(crate) elements: usize,
    pub(crate) bytes: usize,
    pub(crate) decode: fn(&[u8], &mut Vec<f32>),
    /// Byte offsets of the f16 scales, one of which is NaN or infinite if a value is; empty if a block must be decoded to know.
    pub(crate) scales: &'static [usize],
}

impl PartialEq for Block {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Block {}

/// Describes a type of ggml; [`GgmlType`] has its sizes.
const fn block(id: u32, decode: fn(&[u8], &mut Vec<f32>), scales: &'static [usize]) -> Block {
    let (elements, bytes) = GgmlType::from_id(id)
        .block
        .expect("a type that is read has a size");
    Block {
        id,
        elements: elements as usize,
        bytes: bytes as usize,
        decode,
        scales,
    }
}

// Formats that a device reads directly: plain elements, as blocks of one element, and quantized blocks.
pub(crate) const F32: Block = block(
    0,
    |b, out| out.push(f32::from_le_bytes([b[0], b[1], b[2], b[3]])),
    &[],
);
pub(crate) const F16: Block = block(1, |b, out| out.push(bits::half_at(b, 0)), &[0]);
pub(crate) const BF16: Block = block(
    30,
    |b, out| out.push(bf16::from_le_bytes([b[0], b[1]]).to_f32()),
    &[],
);
pub(crate) const Q4_0: Block = block(2, q4_0, &[0]);
pub(crate) const Q4_1: Block = block(3, q4_1, &[0, 2]);
pub(crate) const Q5_0: Block = block(6, q5_0, &[0]);
pub(crate) const Q5_1: Block = block(7, q5_1, &[0, 2]);
pub(crate) const Q8_0: Block = block(8, q8_0, &[0]);
pub(crate) const Q4_K: Block = block(12, q4_k, &[0, 2]);
pub(crate) const Q5_K: Block = block(13, q5_k, &[0, 2]);
pub(crate) const Q6_K: Block = block(14, q6_k, &[208]);

/// The formats whose blocks have several values.
const BLOCKS: [Block; 25] = [
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    block(10, q2_k, &[80, 82]),
    block(11, q3_k, &[108]),
    Q4_K,
    Q5_K,
    Q6_K,
    block(16, iq2_xxs, &[]),
    block(17, iq2_xs, &[]),
    block(18, iq3_xxs, &[]),
    block(19, iq1_s, &[]),
    block(20, iq4_nl, &[]),
    block(21, iq3_s, &[]),
    block(22, iq2_s, &[]),
    block(23, iq4_xs, &[]),
    block(29, iq1_m, &[]),
    block(34, tq1_0, &[]),
    block(35, tq2_0, &[]),
    block(39, mxfp4, &[]),
    block(40, nvfp4, &[]),
    block(41, q1_0, &[]),
    block(42, q2_0, &[]),
];

impl Block {
    /// Format of a ggml type number; `None` for a plain type, and for one without a decoder.
    pub(crate) fn of_id(id: u32) -> Option<Self> {
        BLOCKS.into_iter().find(|block| block.id == id)
    }

    /// Counts the values that are NaN or infinite in whole blocks.
    pub(crate) fn count_non_finite(self, bytes: &[u8]) -> u64 {
        let (mut values, mut count) = (Vec::with_capacity(self.elements), 0);
        for block in bytes.chunks_exact(self.bytes) {
            let odd = |offset: &usize| !bits::half_at(block, *offset).is_finite();
            if self.scales.is_empty() || self.scales.iter().any(odd) {
                values.clear();
                (self.decode)(block, &mut values);
                count += values.iter().filter(|value| !value.is_finite()).count() as u64;
            }
        }
        count
    }
}
