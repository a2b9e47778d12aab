//! Decodes blocks whose values are equally spaced, with one scale for all of them.

use super::bits::{bit, half_at, nibbles, word_at};

// (q − 8)·d
pub(crate) fn q4_0(b: &[u8], out: &mut Vec<f32>) {
    let d = half_at(b, 0);
    out.extend(nibbles(&b[2..18]).map(|q| (f32::from(q) - 8.0) * d));
}

// q·d + m
pub(crate) fn q4_1(b: &[u8], out: &mut Vec<f32>) {
    let (d, m) = (half_at(b, 0), half_at(b, 2));
    out.extend(nibbles(&b[4..20]).map(|q| f32::from(q) * d + m));
}

/// Iterates over numbers of five bits: q_j + 16·bit_j(H).
fn fives(q: &[u8], h: u32) -> impl Iterator<Item = u8> {
    nibbles(q).enumerate().map(move |(j, q)| q | bit(h, j) << 4)
}

// (q − 16)·d
pub(crate) fn q5_0(b: &[u8], out: &mut Vec<f32>) {
    let d = half_at(b, 0);
    let q = fives(&b[6..22], word_at(b, 2));
    out.extend(q.map(|q| (f32::from(q) - 16.0) * d));
}

// q·d + m
pub(crate) fn q5_1(b: &[u8], out: &mut Vec<f32>) {
    let (d, m) = (half_at(b, 0), half_at(b, 2));
    out.extend(fives(&b[8..24], word_at(b, 4)).map(|q| f32::from(q) * d + m));
}

// q·d
pub(crate) fn q8_0(b: &[u8], out: &mut Vec<f32>) {
    let d = half_at(b, 0);
    out.extend(b[2..34].iter().map(|&q| f32::from(q as i8) * d));
}

// digit n of byte b = ((b·3ⁿ mod 256)·3) >> 8; (digit − 1)·d
pub(crate) fn tq1_0(b: &[u8], out: &mut Vec<f32>) {
    let d = half_at(b, 52);
    let mut digits = |bytes: &[u8], count: u32| {
        for n in 0..count {
            let power = 3u8.pow(n);
            out.extend(
                bytes
                    .iter()
                    .map(|b| (f32::from((u16::from(b.wrapping_mul(power)) * 3) >> 8) - 1.0) * d),
            );
        }
    };
    digits(&b[..32], 5);
    digits(&b[32..48], 5);
    digits(&b[48..52], 4);
}

// (q2 − 1)·d
pub(crate) fn tq2_0(b: &[u8], out: &mut Vec<f32>) {
    let d = half_at(b, 64);
    for run in 0..8 {
        let (half, shift) = (&b[32 * (run / 4)..][..32], 2 * (run % 4));
        out.extend(
            half.iter()
                .map(|&q| (f32::from((q >> shift) & 3) - 1.0) * d),
        );
    }
}

// bit ? d : −d, low bit first
pub(crate) fn q1_0(b: &[u8], out: &mut Vec<f32>) {
    let d = half_at(b, 0);
    out.extend(
        b[2..18]
            .iter()
            .flat_map(|&q| (0..8).map(move |n| if q >> n & 1 == 1 { d } else { -d })),
    );
}

// (q − 1)·d, low pair first
pub(crate) fn q2_0(b: &[u8], out: &mut Vec<f32>) {
    let d = half_at(b, 0);
    out.extend(
        b[2..18]
            .iter()
            .flat_map(|&q| (0..4).map(move |n| (f32::from(q >> (2 * n) & 3) - 1.0) * d)),
    );
}
