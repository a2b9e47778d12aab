//! Reads numbers and bits from the bytes of a block.

use half::f16;

/// The f16 at a byte offset, as f32.
pub(crate) fn half_at(b: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([b[at], b[at + 1]]).to_f32()
}

/// The u32 at a byte offset.
pub(crate) fn word_at(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

/// The low four bits.
pub(crate) fn lo(byte: u8) -> u8 {
    byte & 15
}

/// The high four bits.
pub(crate) fn hi(byte: u8) -> u8 {
    byte >> 4
}

/// Nibble `n` of the bytes, counting the low one of each byte first.
pub(crate) fn nibble(bytes: &[u8], n: usize) -> u8 {
    let half = if n.is_multiple_of(2) { lo } else { hi };
    half(bytes[n / 2])
}

/// Iterates over the low four bits of all bytes, then over the high ones.
pub(crate) fn nibbles(bytes: &[u8]) -> impl Iterator<Item = u8> {
    let low = bytes.iter().map(|byte| lo(*byte));
    low.chain(bytes.iter().map(|byte| hi(*byte)))
}

/// Bit `n` of a word.
pub(crate) fn bit(word: u32, n: usize) -> u8 {
    ((word >> n) & 1) as u8
}
