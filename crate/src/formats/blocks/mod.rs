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

// Formats that a device reads directly: plain elements, as blocks of one element, and quantized blocks.
pub(crate) const F32: Block = Block {
    id: 0,
    elements: 1,
    bytes: 4,
    decode: |b, out| out.push(f32::from_le_bytes([b[0], b[1], b[2], b[3]])),
    scales: &[],
};
pub(crate) const F16: Block = Block {
    id: 1,
    elements: 1,
    bytes: 2,
    decode: |b, out| out.push(bits::half_at(b, 0)),
    scales: &[0],
};
pub(crate) const BF16: Block = Block {
    id: 30,
    elements: 1,
    bytes: 2,
    decode: |b, out| out.push(bf16::from_le_bytes([b[0], b[1]]).to_f32()),
    scales: &[],
};
pub(crate) const Q4_0: Block = Block {
    id: 2,
    elements: 32,
    bytes: 18,
    decode: q4_0,
    scales: &[0],
};
pub(crate) const Q4_1: Block = Block {
    id: 3,
    elements: 32,
    bytes: 20,
    decode: q4_1,
    scales: &[0, 2],
};
pub(crate) const Q5_0: Block = Block {
    id: 6,
    elements: 32,
    bytes: 22,
    decode: q5_0,
    scales: &[0],
};
pub(crate) const Q5_1: Block = Block {
    id: 7,
    elements: 32,
    bytes: 24,
    decode: q5_1,
    scales: &[0, 2],
};
pub(crate) const Q8_0: Block = Block {
    id: 8,
    elements: 32,
    bytes: 34,
    decode: q8_0,
    scales: &[0],
};
pub(crate) const Q4_K: Block = Block {
    id: 12,
    elements: 256,
    bytes: 144,
    decode: q4_k,
    scales: &[0, 2],
};
pub(crate) const Q5_K: Block = Block {
    id: 13,
    elements: 256,
    bytes: 176,
    decode: q5_k,
    scales: &[0, 2],
};
pub(crate) const Q6_K: Block = Block {
    id: 14,
    elements: 256,
    bytes: 210,
    decode: q6_k,
    scales: &[208],
};

/// The formats whose blocks have several values.
const BLOCKS: [Block; 25] = [
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Block {
        id: 10,
        elements: 256,
        bytes: 84,
        decode: q2_k,
        scales: &[80, 82],
    },
    Block {
        id: 11,
        elements: 256,
        bytes: 110,
        decode: q3_k,
        scales: &[108],
    },
    Q4_K,
    Q5_K,
    Q6_K,
    Block {
        id: 16,
        elements: 256,
        bytes: 66,
        decode: iq2_xxs,
        scales: &[],
    },
    Block {
        id: 17,
        elements: 256,
        bytes: 74,
        decode: iq2_xs,
        scales: &[],
    },
    Block {
        id: 18,
        elements: 256,
        bytes: 98,
        decode: iq3_xxs,
        scales: &[],
    },
    Block {
        id: 19,
        elements: 256,
        bytes: 50,
        decode: iq1_s,
        scales: &[],
    },
    Block {
        id: 20,
        elements: 32,
        bytes: 18,
        decode: iq4_nl,
        scales: &[],
    },
    Block {
        id: 21,
        elements: 256,
        bytes: 110,
        decode: iq3_s,
        scales: &[],
    },
    Block {
        id: 22,
        elements: 256,
        bytes: 82,
        decode: iq2_s,
        scales: &[],
    },
    Block {
        id: 23,
        elements: 256,
        bytes: 136,
        decode: iq4_xs,
        scales: &[],
    },
    Block {
        id: 29,
        elements: 256,
        bytes: 56,
        decode: iq1_m,
        scales: &[],
    },
    Block {
        id: 34,
        elements: 256,
        bytes: 54,
        decode: tq1_0,
        scales: &[],
    },
    Block {
        id: 35,
        elements: 256,
        bytes: 66,
        decode: tq2_0,
        scales: &[],
    },
    Block {
        id: 39,
        elements: 32,
        bytes: 17,
        decode: mxfp4,
        scales: &[],
    },
    Block {
        id: 40,
        elements: 64,
        bytes: 36,
        decode: nvfp4,
        scales: &[],
    },
    Block {
        id: 41,
        elements: 128,
        bytes: 18,
        decode: q1_0,
        scales: &[],
    },
    Block {
        id: 42,
        elements: 64,
        bytes: 18,
        decode: q2_0,
        scales: &[],
    },
];

impl Block {
    /// Returns the format of a ggml type number, if there is a decoder for it.
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
