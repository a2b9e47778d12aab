//! f32 → blocks of 32 values that are rounded without a search, with the bits of gguf-py 0.19.0. All arithmetic is f32 in the order
//! written. Scales and minima are stored as f16, nearest even; 1/d of d = 0 counts as 0.

use half::f16;

/// Rounds a scale or minimum to f16; `None` if it becomes infinite.
pub(crate) fn half_of(value: f32) -> Option<f16> {
    Some(f16::from_f32(value)).filter(|half| half.is_finite())
}

/// Appends a scale or minimum as f16; `None` if it becomes infinite.
fn push_half(value: f32, out: &mut Vec<u8>) -> Option<()> {
    out.extend_from_slice(&half_of(value)?.to_le_bytes());
    Some(())
}

fn inverse(d: f32) -> f32 {
    if d == 0.0 { 0.0 } else { 1.0 / d }
}

/// Computes the levels of a block. Where 1/d is infinite, d is 0 as f16, so the level does not matter: it is 0.
fn levels(x: &[f32], level: impl Fn(f32) -> f32, most: u8) -> [u8; 32] {
    std::array::from_fn(|j| {
        let level = level(x[j]);
        // A conversion to an integer drops the fraction.
        if level.is_finite() {
            (level as u8).min(most)
        } else {
            0
        }
    })
}

/// Packs the low four bits of elements j and j + 16 into one byte.
fn push_nibbles(q: &[u8; 32], out: &mut Vec<u8>) {
    out.extend((0..16).map(|j| q[j] & 15 | q[j + 16] << 4));
}

/// Packs the fifth bits: bit j belongs to element j.
fn push_fifth_bits(q: &[u8; 32], out: &mut Vec<u8>) {
    let bits = (0..32).fold(0, |bits, j| bits | u32::from(q[j] >> 4) << j);
    out.extend_from_slice(&bits.to_le_bytes());
}

// d = max |x| / 127; q = x·(1/d), half away from zero
pub(crate) fn q8_0(x: &[f32], out: &mut Vec<u8>) -> Option<()> {
    let d = x.iter().fold(0.0, |most: f32, x| most.max(x.abs())) / 127.0;
    let inverse = inverse(d);
    push_half(d, out)?;
    let levels = x.iter().map(|x| (x * inverse).round());
    out.extend(levels.map(|q| if q.is_finite() { q as i8 as u8 } else { 0 }));
    Some(())
}

/// Computes `d = a / −half`, where `a` is the first value of largest magnitude, and `q = min(most, x·(1/d) + half + 0.5)` without fraction.
fn around_zero(x: &[f32], half: f32, most: u8) -> (f32, [u8; 32]) {
    let d = x[1..]
        .iter()
        .fold(x[0], |a, &x| if x.abs() > a.abs() { x } else { a })
        / -half;
    let inverse = inverse(d);
    (d, levels(x, |x| x * inverse + (half + 0.5), most))
}

pub(crate) fn q4_0(x: &[f32], out: &mut Vec<u8>) -> Option<()> {
    let (d, q) = around_zero(x, 8.0, 15);
    push_half(d, out)?;
    push_nibbles(&q, out);
    Some(())
}

pub(crate) fn q5_0(x: &[f32], out: &mut Vec<u8>) -> Option<()> {
    let (d, q) = around_zero(x, 16.0, 31);
    push_half(d, out)?;
    push_fifth_bits(&q, out);
    push_nibbles(&q, out);
    Some(())
}

/// Computes `m = min`, `d = (max − m) / most`, and `q = min(most, (x − m)·(1/d) + 0.5)` without fraction.
fn above_minimum(x: &[f32], most: u8) -> (f32, f32, [u8; 32]) {
    // Among zeros with different signs the last one counts.
    let (m, max) = x.iter().fold((x[0], x[0]), |(m, max), &x| {
        (if x <= m { x } else { m }, if x >= max { x } else { max })
    });
    let d = (max - m) / f32::from(most);
    let inverse = inverse(d);
    (d, m, levels(x, |x| (x - m) * inverse + 0.5, most))
}

pub(crate) fn q4_1(x: &[f32], out: &mut Vec<u8>) -> Option<()> {
    let (d, m, q) = above_minimum(x, 15);
    push_half(d, out)?;
    push_half(m, out)?;
    push_nibbles(&q, out);
    Some(())
}

pub(crate) fn q5_1(x: &[f32], out: &mut Vec<u8>) -> Option<()> {
    let (d, m, q) = above_minimum(x, 31);
    push_half(d, out)?;
    push_half(m, out)?;
    push_fifth_bits(&q, out);
    push_nibbles(&q, out);
    Some(())
}
