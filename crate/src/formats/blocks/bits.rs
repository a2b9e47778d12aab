//! Reads numbers and bits from the bytes of a block.

use half::f16;

/// Returns the f16 at a byte offset, as f32.
pub(crate) fn half_at(b: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([b[at], b[at + 1]]).to_f32()
}

/// Returns the u32 at a byte offset.
pub(crate) fn word_at(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

/// Returns the low four bits.
pub(crate) fn lo(byte: u8) -> u8 {
    byte & 15
}

/// Returns the high four bits.
pub(crate) fn hi(byte: u8) -> u8 {
    byte >> 4
}

/// Returns bit `n` of a word.
pub(crate) fn bit(word: u32, n: usize) -> u8 {
    ((word >> n) & 1) as u8
}
