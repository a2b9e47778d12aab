//! Converts stored values to f32, chunk by chunk.

use half::{bf16, f16};

use super::super::gguf::GgmlType;
use crate::error::{Refusal, word};
use crate::formats::blocks;

/// Storage of a tensor's values, for the types that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    F32,
    F16,
    Bf16,
    F64,
    Blocks(blocks::Block),
}

impl Encoding {
    /// The encoding of a safetensors dtype word; `None` if it cannot be read.
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        Some(match word {
            "F32" => Self::F32,
            "F16" => Self::F16,
            "BF16" => Self::Bf16,
            "F64" => Self::F64,
            _ => return None,
        })
    }

    /// The encoding of a dtype: a word of safetensors, or `GGML:<type>`; `None` if it cannot be read.
    pub(crate) fn of_dtype(dtype: &str) -> Option<Self> {
        Self::of_word(dtype).or_else(|| GgmlType::of_dtype(dtype).and_then(Self::of_ggml))
    }

    /// The encoding of a ggml type; `None` if it cannot be read.
    pub(crate) fn of_ggml(ggml_type: GgmlType) -> Option<Self> {
        Self::of_word(&ggml_type.dtype())
            .or_else(|| blocks::Block::of_id(ggml_type.id).map(Self::Blocks))
    }

    /// Bytes and elements of the smallest unit that can be decoded by itself.
    pub(crate) fn unit(self) -> (usize, usize) {
        match self {
            Self::F32 => (4, 1),
            Self::F16 | Self::Bf16 => (2, 1),
            Self::F64 => (8, 1),
            Self::Blocks(block) => (block.bytes, block.elements),
        }
    }

    /// Appends the values of whole units.
    pub(crate) fn decode(self, bytes: &[u8], out: &mut Vec<f32>) {
        match self {
            Self::F32 => out.extend(elements(bytes).map(f32::from_le_bytes)),
            Self::F16 => out.extend(elements(bytes).map(|b| f16::from_le_bytes(b).to_f32())),
            Self::Bf16 => out.extend(elements(bytes).map(|b| bf16::from_le_bytes(b).to_f32())),
            Self::F64 => out.extend(elements(bytes).map(|b| f64::from_le_bytes(b) as f32)),
            Self::Blocks(block) => bytes
                .chunks_exact(block.bytes)
                .for_each(|bytes| (block.decode)(bytes, out)),
        }
    }
}

/// Iterates over whole elements of `N` bytes.
fn elements<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> {
    bytes.as_chunks().0.iter().copied()
}

/// Counts the elements of `N` bytes that are `odd`.
fn count<const N: usize>(bytes: &[u8], odd: fn([u8; N]) -> bool) -> u64 {
    elements(bytes).filter(|b| odd(*b)).count() as u64
}

/// Counts the NaN and infinite values among whole elements or blocks of a dtype; dtypes without such values give 0.
pub(crate) fn count_non_finite(word: &str, bytes: &[u8]) -> u64 {
    match word {
        "F32" | "C64" => count(bytes, |b| !f32::from_le_bytes(b).is_finite()),
        "F16" => count(bytes, |b| !f16::from_le_bytes(b).is_finite()),
        "BF16" => count(bytes, |b| !bf16::from_le_bytes(b).is_finite()),
        "F64" => count(bytes, |b| !f64::from_le_bytes(b).is_finite()),
        "F8_E4M3" => count(bytes, |[b]| b & 0x7f == 0x7f),
        "F8_E5M2" => count(bytes, |[b]| b & 0x7c == 0x7c),
        "F8_E8M0" => count(bytes, |[b]| b == 0xff),
        "F8_E4M3FNUZ" | "F8_E5M2FNUZ" => count(bytes, |[b]| b == 0x80),
        _ => match GgmlType::of_dtype(word).and_then(Encoding::of_ggml) {
            Some(Encoding::Blocks(block)) => block.count_non_finite(bytes),
            _ => 0,
        },
    }
}

/// Refusal of a tensor whose stored type has no decoder.
pub(crate) fn unreadable(dtype: &str, name: &str, artifact: &str) -> Refusal {
    let code = match dtype.strip_prefix("GGML:") {
        Some(number) if number.bytes().all(|b| b.is_ascii_digit()) => {
            word!("gguf.tensor.type-unknown")
        }
        Some(_) => word!("gguf.tensor.type-unsupported"),
        None => word!("model.tensor.dtype"),
    };
    Refusal::new(code)
        .stage("read")
        .of(artifact)
        .subject(name)
        .found(dtype)
}
