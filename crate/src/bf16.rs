//! bf16 arithmetic on bits: rounding of f32 (shaders/README.md, "Rounding to bf16"), widening, and elements in the halves of 32-bit words,
//! even ones in the low half.

/// Rounds f32 to bf16 bits, away from zero with probability frac/65536: compare-and-select against 16 bits of noise.
pub fn round_stochastic(x: f32, noise: u32) -> u16 {
    let bits = x.to_bits();
    let high = bits >> 16;
    if bits & 0x7F80_0000 == 0x7F80_0000 {
        return if bits & 0x007F_FFFF != 0 {
            (high & 0x8000 | 0x7FC0) as u16
        } else {
            high as u16
        };
    }
    let rounded = high + u32::from(noise < bits & 0xFFFF);
    (if rounded & 0x7FFF == 0x7F80 {
        high
    } else {
        rounded
    }) as u16
}

/// Rounds f32 to bf16 bits, to nearest even; NaN becomes the quiet NaN of its sign.
pub fn round_nearest(x: f32) -> u16 {
    let bits = x.to_bits();
    if bits & 0x7FFF_FFFF > 0x7F80_0000 {
        return ((bits >> 16) & 0x8000 | 0x7FC0) as u16;
    }
    ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) as u16
}

/// Widens bf16 bits to f32, exactly.
pub fn widen(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Reads element `i` of packed words.
pub(crate) fn get(packed: &[u32], i: usize) -> f32 {
    widen((packed[i / 2] >> (16 * (i & 1))) as u16)
}

/// Writes element `i` of `n` into packed words; the unused half of the last word becomes 0.
pub(crate) fn put(packed: &mut [u32], i: usize, n: usize, bits: u16) {
    let word = &mut packed[i / 2];
    *word = if i & 1 == 1 {
        *word & 0xFFFF | u32::from(bits) << 16
    } else {
        *word & 0xFFFF_0000 | u32::from(bits)
    };
    if i & 1 == 0 && i + 1 == n {
        *word &= 0xFFFF;
    }
}
