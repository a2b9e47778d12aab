//! f32 → the types of GGUF files, with the bits of ggml's reference quantiser.

mod k_quants;
mod legacy_quants;

use half::f16;

use crate::bf16;
use crate::error::{Refusal, Result, refuse_all, word};
use crate::formats::blocks::tensor_type::TensorType;

use k_quants::{q4_k, q6_k};
use legacy_quants::{q4_0, q4_1, q5_0, q5_1, q8_0};

/// Encodes one tensor, row after row, in pieces of any length.
///
/// A value that the type cannot hold is never written silently: it is counted, and [`Encoder::finish`] refuses the tensor.
#[derive(Debug, Clone)]
pub struct Encoder {
    to: TensorType,
    /// Values of a block that is not complete yet.
    pending: Vec<f32>,
    overflowed: u64,
    non_finite: u64,
}

/// Function that appends one block. It returns `None` if a scale is infinite as f16; the appended bytes are then meaningless.
type EncodeBlock = fn(&[f32], &mut Vec<u8>) -> Option<()>;

/// Encoder of a block; `None` for the plain types.
fn encoder_of(to: TensorType) -> Option<EncodeBlock> {
    let encode: EncodeBlock = match to {
        TensorType::F32 | TensorType::F16 | TensorType::Bf16 => return None,
        TensorType::Q8_0 => q8_0,
        TensorType::Q4K => q4_k,
        TensorType::Q6K => q6_k,
        TensorType::Q4_0 => q4_0,
        TensorType::Q4_1 => q4_1,
        TensorType::Q5_0 => q5_0,
        TensorType::Q5_1 => q5_1,
    };
    Some(encode)
}

impl Encoder {
    /// Creates the encoder of a tensor that is written as `to`.
    pub fn new(to: TensorType) -> Self {
        Self {
            to,
            pending: Vec::new(),
            overflowed: 0,
            non_finite: 0,
        }
    }

    /// Appends the blocks that these values complete. A block that cannot be encoded becomes zeros.
    pub fn push(&mut self, mut values: &[f32], out: &mut Vec<u8>) {
        let (elements, _) = self.block();
        if !self.pending.is_empty() {
            let (first, rest) = values.split_at(values.len().min(elements - self.pending.len()));
            self.pending.extend_from_slice(first);
            if self.pending.len() < elements {
                return;
            }
            let block = std::mem::take(&mut self.pending);
            self.encode(&block, out);
            values = rest;
        }
        let (whole, rest) = values.split_at(values.len() / elements * elements);
        self.encode(whole, out);
        self.pending.extend_from_slice(rest);
    }

    /// True if something was found that [`Self::finish`] will refuse.
    pub fn refuses(&self) -> bool {
        self.overflowed > 0 || self.non_finite > 0
    }

    /// Ends the tensor.
    ///
    /// # Errors
    /// `gguf.tensor.block-row` if a block is not complete; `export.non-finite` if a NaN or an infinity was to become a block, which has no
    /// place for it; `export.overflow` if finite values would become infinite. In a block whose scale overflows these are all its values.
    pub fn finish(self, tensor: &str) -> Result<()> {
        let (elements, word) = (self.block().0, self.to.word());
        let mut refusals = Vec::new();
        let mut refuse = |count: u64, code, expected: String, found: &str| {
            if count > 0 {
                let refusal = Refusal::new(code).stage("read").subject(tensor);
                refusals.push(refusal.expected(expected).found(format!("{count} {found}")));
            }
        };
        let left = self.pending.len() as u64;
        refuse(
            left,
            word!("gguf.tensor.block-row"),
            format!("whole blocks of {elements} values"),
            "values of another block",
        );
        refuse(
            self.non_finite,
            word!("export.non-finite"),
            format!("finite values for {word}"),
            "NaN or infinite",
        );
        refuse(
            self.overflowed,
            word!("export.overflow"),
            format!("values in the range of {word}"),
            "would become infinite",
        );
        refuse_all(refusals)
    }

    fn block(&self) -> (usize, usize) {
        let (elements, bytes) = self.to.block();
        (elements as usize, bytes as usize)
    }

    /// Appends whole blocks.
    fn encode(&mut self, values: &[f32], out: &mut Vec<u8>) {
        let (elements, bytes) = self.block();
        out.reserve(values.len() / elements * bytes);
        if let Some(encode) = encoder_of(self.to) {
            values
                .chunks_exact(elements)
                .for_each(|block| self.encode_block(block, bytes, encode, out));
            return;
        }
        for &value in values {
            let finite = match self.to {
                TensorType::F16 => {
                    let rounded = f16::from_f32(value);
                    out.extend_from_slice(&rounded.to_le_bytes());
                    rounded.is_finite()
                }
                TensorType::Bf16 => {
                    let rounded = bf16::round_nearest(value);
                    out.extend_from_slice(&rounded.to_le_bytes());
                    bf16::widen(rounded).is_finite()
                }
                _ => {
                    out.extend_from_slice(&value.to_le_bytes());
                    true
                }
            };
            self.overflowed += u64::from(value.is_finite() && !finite);
        }
    }

    fn encode_block(
        &mut self,
        block: &[f32],
        bytes: usize,
        encode: EncodeBlock,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        let non_finite = block.iter().filter(|value| !value.is_finite()).count();
        if non_finite == 0 && encode(block, out).is_some() {
            return;
        }
        if non_finite == 0 {
            self.overflowed += block.len() as u64;
        }
        self.non_finite += non_finite as u64;
        out.truncate(start);
        out.resize(start + bytes, 0);
    }
}
