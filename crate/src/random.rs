//! Philox4x32-10 noise and its keys (shaders/README.md, "Noise"): the twin of `common.wgsl`.

/// Purpose string of the noise that rounds parameters and moments.
pub const STOCHASTIC_ROUNDING: &str = "sr:";

/// Purpose string of APOLLO's projectors.
pub const PROJECTOR: &str = "proj:";

/// The three tensors of an update that draw from one Philox call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// First moment or momentum.
    M = 0,
    /// Second moment.
    V = 1,
    /// Parameter.
    P = 2,
}

/// Computes ten rounds of Philox4x32 (Salmon et al., SC 2011).
pub fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut c0, mut c1, mut c2, mut c3] = counter;
    let [mut k0, mut k1] = key;
    for _ in 0..10 {
        let a = u64::from(c0) * 0xD251_1F53;
        let b = u64::from(c2) * 0xCD9E_8D57;
        (c0, c1, c2, c3) = (
            (b >> 32) as u32 ^ c1 ^ k0,
            b as u32,
            (a >> 32) as u32 ^ c3 ^ k1,
            a as u32,
        );
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

/// Returns the key of `name` for one purpose (`sr:`, `proj:`, …) in a run with this seed.
pub fn key(purpose: &str, seed: u64, name: &str) -> [u32; 2] {
    let hash = purpose
        .bytes()
        .chain(name.bytes())
        .fold(0xCBF2_9CE4_8422_2325u64, |h, byte| {
            (h ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
        });
    let k = mix(mix(seed.wrapping_add(0x9E37_79B9_7F4A_7C15)) ^ hash);
    [k as u32, (k >> 32) as u32]
}

/// Returns the four words that serve elements 2·`pair` and 2·`pair` + 1 at step `t`.
pub fn words(key: [u32; 2], pair: u64, t: u64) -> [u32; 4] {
    philox(
        [pair as u32, (pair >> 32) as u32, t as u32, (t >> 32) as u32],
        key,
    )
}

/// Returns a number below `bound`, drawn from the counter (`index`, `t`).
pub fn below(key: [u32; 2], index: u64, t: u64, bound: u64) -> u64 {
    let [x0, x1, _, _] = words(key, index, t);
    let random = (u64::from(x1) << 32) | u64::from(x0);
    ((u128::from(random) * u128::from(bound)) >> 64) as u64
}

/// Returns 16 bits of noise for the flat element `i` of a tensor at step `t`.
pub fn noise(key: [u32; 2], stream: Stream, i: u64, t: u64) -> u32 {
    select(words(key, i >> 1, t), stream, (i & 1) as u32)
}

/// Selects the 16 bits of one element of the pair.
pub fn select(words: [u32; 4], stream: Stream, odd: u32) -> u32 {
    (words[stream as usize] >> (16 * odd)) & 0xFFFF
}
