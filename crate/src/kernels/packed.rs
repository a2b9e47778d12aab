//! bf16 elements in 32-bit words, and how twins write them (shaders/README.md, "Rounding to bf16"): even elements in the low half.

use super::noise::{Rounding, Stream, round_nearest, round_stochastic, select, widen, words};

/// Element `i` of packed words.
pub(super) fn get(packed: &[u32], i: usize) -> f32 {
    widen((packed[i / 2] >> (16 * (i & 1))) as u16)
}

/// Writes element `i` of `n`; the unused half of the last word becomes 0.
pub(super) fn put(packed: &mut [u32], i: usize, n: usize, bits: u16) {
    let word = &mut packed[i / 2];
    *word = if i & 1 == 1 { *word & 0xFFFF | u32::from(bits) << 16 } else { *word & 0xFFFF_0000 | u32::from(bits) };
    if i & 1 == 0 && i + 1 == n {
        *word &= 0xFFFF;
    }
}

/// How a twin rounds the writes of one step.
pub(super) struct Writes {
    rounding: u32,
    key: [u32; 2],
    step: u64,
    first_pair: u64,
}

impl Writes {
    /// From the words of `Params`; 64-bit values come as low, high.
    pub(super) fn new(rounding: u32, key: [u32; 2], step: [u32; 2], first_pair: [u32; 2]) -> Self {
        let wide = |[low, high]: [u32; 2]| u64::from(low) | u64::from(high) << 32;
        Self { rounding, key, step: wide(step), first_pair: wide(first_pair) }
    }

    /// True where the tensor is f32.
    pub(super) fn is_f32(&self) -> bool {
        self.rounding == Rounding::None.word()
    }

    /// The Philox words of element `i`'s pair.
    pub(super) fn words(&self, i: usize) -> [u32; 4] {
        if self.rounding == Rounding::Stochastic.word() { words(self.key, self.first_pair + i as u64 / 2, self.step) } else { [0; 4] }
    }

    /// bf16 bits of `value`, with the noise of `stream` or the given one.
    pub(super) fn round(&self, value: f32, words: [u32; 4], stream: Stream, i: usize, given: Option<&u32>) -> u16 {
        if self.rounding == Rounding::Nearest.word() {
            round_nearest(value)
        } else if self.rounding == Rounding::Given.word() {
            round_stochastic(value, given.copied().unwrap_or(0) & 0xFFFF)
        } else {
            round_stochastic(value, select(words, stream, (i & 1) as u32))
        }
    }

    /// Replaces element `i` of `n` of a parameter, f32 or packed, by `new(old)` (stream p).
    pub(super) fn parameter(&self, p: &mut [u32], i: usize, n: usize, given: Option<&u32>, new: impl FnOnce(f32) -> f32) {
        if self.is_f32() {
            p[i] = new(f32::from_bits(p[i])).to_bits();
        } else {
            let bits = self.round(new(get(p, i)), self.words(i), Stream::P, i, given);
            put(p, i, n, bits);
        }
    }
}
