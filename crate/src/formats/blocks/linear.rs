//! Decodes blocks whose values are equally spaced, with one scale for all of them.

use super::bits::{bit, half_at, hi, lo, word_at};

// (lo_j − 8)·d, then (hi_j − 8)·d
pub(crate) fn q4_0(b: &[u8], out: &mut Vec<f32>) {
    let d = half_at(b, 0);
    let q = &b[2..18];
    out.extend(q.iter().map(|&q| (f32::from(lo(q)) - 8.0) * d));
    out.extend(q.iter().map(|&q| (f32::from(hi(q)) - 8.0) * d));
}

// q·d + m
pub(crate) fn q4_1(b: &[u8], out: &mut Vec<f32>) {
    let (d, m) = (half_at(b, 0), half_at(b, 2));
    let q = &b[4..20];
    out.extend(q.iter().map(|&q| f32::from(lo(q)) * d + m));
    out.extend(q.iter().map(|&q| f32::from(hi(q)) * d + m));
}

// (q + 16·bit_j(H) − 16)·d
pub(crate) fn q5_0(b: &[u8], out: &mut Vec<f32>) {
    let (d, h) = (half_at(b, 0), word_at(b, 2));
    let q = &b[6..22];
    out.extend(
        q.iter()
            .enumerate()
            .map(|(j, &q)| (f32::from(lo(q) | bit(h, j) << 4) - 16.0) * d),
    );
    out.extend(
        q.iter()
            .enumerate()
            .map(|(j, &q)| (f32::from(hi(q) | bit(h, j + 16) << 4) - 16.0) * d),
    );
}

// (q + 16·bit_j(H))·d + m
pub(crate) fn q5_1(b: &[u8], out: &mut Vec<f32>) {
    let (d, m, h) = (half_at(b, 0), half_at(b, 2), word_at(b, 4));
    let q = &b[8..24];
    out.extend(
        q.iter()
            .enumerate()
            .map(|(j, &q)| f32::from(lo(q) | bit(h, j) << 4) * d + m),
    );
    out.extend(
        q.iter()
            .enumerate()
            .map(|(j, &q)| f32::from(hi(q) | bit(h, j + 16) << 4) * d + m),
    );
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
    for (half, shift) in [
        (0, 0),
        (0, 2),
        (0, 4),
        (0, 6),
        (1, 0),
        (1, 2),
        (1, 4),
        (1, 6),
    ] {
        out.extend(
            b[32 * half..][..32]
                .iter()
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
