//! The noise that rounds the writes of a step (shaders/README.md, "Rounding to bf16"): a part of `Params`, and the rounded writes of twins.

use super::params::Field;
use crate::bf16::{get, put, round_nearest, round_stochastic};
use crate::random::{Stream, select, words};

/// The rounding of a value that is written back to its tensor ([example](crate::kernel)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// None, since the tensor is f32.
    None = 0,
    /// To the nearest bf16, ties to even.
    Nearest = 1,
    /// To bf16, stochastically, with noise from Philox.
    Stochastic = 2,
    /// To bf16, stochastically, with noise from a buffer (recorded vectors).
    Given = 3,
}

impl Rounding {
    /// The word that the shaders compare with.
    pub fn word(self) -> u32 {
        self as u32
    }

    /// The rounding of this word; every other word is taken for `Given`, and by the shaders for given noise of zero.
    pub fn from_word(word: u32) -> Self {
        match word {
            0 => Rounding::None,
            1 => Rounding::Nearest,
            2 => Rounding::Stochastic,
            _ => Rounding::Given,
        }
    }
}

/// The source of the rounding of one step of one parameter: the last field of a kernel's parameters, `@align(16) noise: Noise` in its shader. A rule
/// gets it ready-made, and passes it on ([example](crate::optim::Rule::binds_gate)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noise {
    /// Philox key of the parameter.
    pub key: [u32; 2],
    /// The parameter's step, counted from 1.
    pub step: u64,
    /// The rounding of values that are written back.
    pub rounding: Rounding,
    /// The index of the first pair of elements: 0, except in tensors that hold some rows of a parameter.
    pub first_pair: u32,
}

impl Noise {
    /// Replaces element `i` of `n` of a parameter by `new(old)`, f32 or packed bf16, rounded as a shader rounds with `noise_words(…).z`. For twins.
    pub fn write(&self, p: &mut [u32], i: usize, n: usize, new: impl FnOnce(f32) -> f32) {
        Writes::new(*self).parameter(p, i, n, None, new);
    }
}

impl Field for Noise {
    const WGSL: &'static str = "Noise";

    fn put(self, words: &mut Vec<u32>) {
        words.resize(words.len().next_multiple_of(4), 0);
        words.extend([
            self.key[0],
            self.key[1],
            self.step as u32,
            (self.step >> 32) as u32,
            self.rounding.word(),
            self.first_pair,
        ]);
        words.resize(words.len().next_multiple_of(4), 0);
    }

    fn take(words: &[u32], at: &mut usize) -> Self {
        let first = at.next_multiple_of(4);
        *at = (first + 6).next_multiple_of(4);
        let word = |i: usize| words[first + i];
        Self {
            key: [word(0), word(1)],
            step: long([word(2), word(3)]),
            rounding: Rounding::from_word(word(4)),
            first_pair: word(5),
        }
    }
}

/// Joins the low and the high word of a number, which parameters have as two.
pub(crate) fn long([low, high]: [u32; 2]) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// The rounded writes of one step, for twins.
pub(crate) struct Writes {
    noise: Noise,
    first_pair: u64,
}

impl Writes {
    /// The writes of a whole tensor.
    pub fn new(noise: Noise) -> Self {
        Self {
            noise,
            first_pair: 0,
        }
    }

    /// Returns writes whose first two elements take this pair (low, high word) of the noise.
    pub fn from_pair(noise: Noise, pair: [u32; 2]) -> Self {
        Self {
            noise,
            first_pair: long(pair),
        }
    }

    /// Returns true if the tensor is f32.
    pub fn is_f32(&self) -> bool {
        self.noise.rounding == Rounding::None
    }

    /// The Philox words of the pair of element `i`.
    pub fn words(&self, i: usize) -> [u32; 4] {
        let Noise {
            key,
            step,
            rounding,
            first_pair,
        } = self.noise;
        if rounding == Rounding::Stochastic {
            let first = self.first_pair + u64::from(first_pair);
            words(key, first + i as u64 / 2, step)
        } else {
            [0; 4]
        }
    }

    /// Rounds `value` to bf16 bits, with the noise of `stream` or the given noise.
    pub fn round(
        &self,
        value: f32,
        words: [u32; 4],
        stream: Stream,
        i: usize,
        given: Option<&u32>,
    ) -> u16 {
        match self.noise.rounding {
            Rounding::Nearest => round_nearest(value),
            Rounding::Given => round_stochastic(value, given.copied().unwrap_or(0) & 0xFFFF),
            Rounding::Stochastic | Rounding::None => {
                round_stochastic(value, select(words, stream, (i & 1) as u32))
            }
        }
    }

    /// Replaces element `i` of `n` of a parameter, f32 or packed, by `new(old)` (stream p).
    pub fn parameter(
        &self,
        p: &mut [u32],
        i: usize,
        n: usize,
        given: Option<&u32>,
        new: impl FnOnce(f32) -> f32,
    ) {
        if self.is_f32() {
            p[i] = new(f32::from_bits(p[i])).to_bits();
        } else {
            let bits = self.round(new(get(p, i)), self.words(i), Stream::P, i, given);
            put(p, i, n, bits);
        }
    }
}
