//! Philox4x32-10 noise, its keys, and the rounding of f32 to bf16 (shaders/README.md, "Noise" and "Rounding to bf16"): the twin of what
//! `common.wgsl` does.

use super::kernel::Field;

/// Purpose of the noise that rounds parameters and moments.
pub const STOCHASTIC_ROUNDING: &str = "sr:";
/// Purpose of APOLLO's projectors.
pub const PROJECTOR: &str = "proj:";

/// The three tensors of a step that draw from one Philox call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// First moment or momentum.
    M = 0,
    /// Second moment.
    V = 1,
    /// Parameter.
    P = 2,
}

/// How a value is written back to its tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// The tensor is f32.
    None,
    /// bf16, nearest even.
    Nearest,
    /// bf16, stochastic, noise from Philox.
    Stochastic,
    /// bf16, stochastic, noise from a buffer (recorded vectors).
    Given,
}

impl Rounding {
    /// The word that the shaders compare with.
    pub fn word(self) -> u32 {
        match self {
            Rounding::None => 0,
            Rounding::Nearest => 1,
            Rounding::Stochastic => 2,
            Rounding::Given => 3,
        }
    }

    /// The rounding of this word; the shaders take every other word for given noise of zero.
    pub fn from_word(word: u32) -> Self {
        match word {
            0 => Rounding::None,
            1 => Rounding::Nearest,
            2 => Rounding::Stochastic,
            _ => Rounding::Given,
        }
    }
}

/// What rounds the writes of one step of one parameter: the last field of a kernel's parameters, `@align(16) noise: Noise` in its shader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noise {
    /// Philox key of the parameter: [`key`].
    pub key: [u32; 2],
    /// The parameter's step, counted from 1.
    pub step: u64,
    /// How values are written back.
    pub rounding: Rounding,
}

impl Field for Noise {
    const WGSL: &'static str = "Noise";

    fn put(self, words: &mut Vec<u32>) {
        words.resize(words.len().next_multiple_of(4), 0);
        words.extend([self.key[0], self.key[1], self.step as u32, (self.step >> 32) as u32, self.rounding.word()]);
        words.resize(words.len().next_multiple_of(4), 0);
    }

    fn take(words: &[u32], at: &mut usize) -> Self {
        let first = at.next_multiple_of(4);
        *at = (first + 5).next_multiple_of(4);
        let word = |i: usize| words[first + i];
        let step = u64::from(word(2)) | u64::from(word(3)) << 32;
        Self { key: [word(0), word(1)], step, rounding: Rounding::from_word(word(4)) }
    }
}

/// Ten rounds of Philox4x32 (Salmon et al., SC 2011).
pub fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut c0, mut c1, mut c2, mut c3] = counter;
    let [mut k0, mut k1] = key;
    for _ in 0..10 {
        let a = u64::from(c0) * 0xD251_1F53;
        let b = u64::from(c2) * 0xCD9E_8D57;
        (c0, c1, c2, c3) = ((b >> 32) as u32 ^ c1 ^ k0, b as u32, (a >> 32) as u32 ^ c3 ^ k1, a as u32);
        k0 = k0.wrapping_add(0x9E37_79B9);
        k1 = k1.wrapping_add(0xBB67_AE85);
    }
    [c0, c1, c2, c3]
}

fn mix(mut z: u64) -> u64 {
    z ^= z >> 30;
    z = z.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z ^= z >> 27;
    z = z.wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The key of `name` for one purpose (`sr:`, `proj:`, …) in a run of this seed.
pub fn key(purpose: &str, seed: u64, name: &str) -> [u32; 2] {
    let hash =
        purpose.bytes().chain(name.bytes()).fold(0xCBF2_9CE4_8422_2325u64, |h, byte| (h ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3));
    let k = mix(mix(seed.wrapping_add(0x9E37_79B9_7F4A_7C15)) ^ hash);
    [k as u32, (k >> 32) as u32]
}

/// The four words that serve elements 2·`pair` and 2·`pair` + 1 at step `t`.
pub fn words(key: [u32; 2], pair: u64, t: u64) -> [u32; 4] {
    philox([pair as u32, (pair >> 32) as u32, t as u32, (t >> 32) as u32], key)
}

/// 16 bits of noise for flat element `i` of a tensor at step `t`.
pub fn noise(key: [u32; 2], stream: Stream, i: u64, t: u64) -> u32 {
    select(words(key, i >> 1, t), stream, (i & 1) as u32)
}

/// The 16 bits of one element of the pair.
pub fn select(words: [u32; 4], stream: Stream, odd: u32) -> u32 {
    (words[stream as usize] >> (16 * odd)) & 0xFFFF
}

/// f32 → bf16 bits away from zero with probability frac/65536: compare-and-select against 16 bits of noise.
pub fn round_stochastic(x: f32, noise: u32) -> u16 {
    let bits = x.to_bits();
    let high = bits >> 16;
    if bits & 0x7F80_0000 == 0x7F80_0000 {
        return if bits & 0x007F_FFFF != 0 { (high & 0x8000 | 0x7FC0) as u16 } else { high as u16 };
    }
    let rounded = high + u32::from(noise < bits & 0xFFFF);
    (if rounded & 0x7FFF == 0x7F80 { high } else { rounded }) as u16
}

/// f32 → bf16 bits, nearest even; NaN becomes the quiet NaN of its sign.
pub fn round_nearest(x: f32) -> u16 {
    let bits = x.to_bits();
    if bits & 0x7FFF_FFFF > 0x7F80_0000 {
        return ((bits >> 16) & 0x8000 | 0x7FC0) as u16;
    }
    ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) as u16
}

/// bf16 bits → f32, exactly.
pub fn widen(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// A finite gradient beyond ±1e15 is taken as ±1e15, so that g² stays finite; NaN and Inf pass.
pub fn bounded(g: f32) -> f32 {
    if g.is_finite() { g.clamp(-1e15, 1e15) } else { g }
}

/// a + w·(b − a), computed from the nearer end, so that w = 0 and w = 1 give a and b exactly.
pub fn lerp(a: f32, b: f32, w: f32) -> f32 {
    if w < 0.5 { a + w * (b - a) } else { b - (b - a) * (1.0 - w) }
}
