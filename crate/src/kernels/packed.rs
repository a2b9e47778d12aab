//! bf16 elements in 32-bit words, and how twins write them (shaders/README.md, "Rounding to bf16"): even elements in the low half.

use super::noise::{Noise, Rounding, Stream, round_nearest, round_stochastic, select, widen, words};

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
    noise: Noise,
    first_pair: u64,
}

impl Writes {
    /// The writes of a whole tensor.
    pub(super) fn new(noise: Noise) -> Self {
        Self { noise, first_pair: 0 }
    }

    /// Writes whose first two elements are this pair (low, high word) of the noise.
    pub(super) fn from_pair(noise: Noise, [low, high]: [u32; 2]) -> Self {
        Self { noise, first_pair: u64::from(low) | u64::from(high) << 32 }
    }

    /// True where the tensor is f32.
    pub(super) fn is_f32(&self) -> bool {
        self.noise.rounding == Rounding::None
    }

    /// The Philox words of element `i`'s pair.
    pub(super) fn words(&self, i: usize) -> [u32; 4] {
        let Noise { key, step, rounding } = self.noise;
        if rounding == Rounding::Stochastic { words(key, self.first_pair + i as u64 / 2, step) } else { [0; 4] }
    }

    /// bf16 bits of `value`, with the noise of `stream` or the given one.
    pub(super) fn round(&self, value: f32, words: [u32; 4], stream: Stream, i: usize, given: Option<&u32>) -> u16 {
        match self.noise.rounding {
            Rounding::Nearest => round_nearest(value),
            Rounding::Given => round_stochastic(value, given.copied().unwrap_or(0) & 0xFFFF),
            Rounding::Stochastic | Rounding::None => round_stochastic(value, select(words, stream, (i & 1) as u32)),
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
