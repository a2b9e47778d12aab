//! Decodes blocks whose four bits select one of sixteen values that are not equally spaced.

use super::bits::{half_at, nibble, nibbles};

/// The sixteen values of IQ4.
const IQ4: [f32; 16] = [
    -127.0, -104.0, -83.0, -65.0, -49.0, -35.0, -22.0, -10.0, 1.0, 13.0, 25.0, 38.0, 53.0, 69.0,
    89.0, 113.0,
];

fn table_run(bytes: &[u8], table: &[f32; 16], scale: f32, out: &mut Vec<f32>) {
    out.extend(nibbles(bytes).map(|q| scale * table[usize::from(q)]));
}

// d·T[nibble]
pub(crate) fn iq4_nl(b: &[u8], out: &mut Vec<f32>) {
    table_run(&b[2..18], &IQ4, half_at(b, 0), out);
}

// (d·s)·T[nibble], runs of 32
pub(crate) fn iq4_xs(b: &[u8], out: &mut Vec<f32>) {
    let (d, h, l, q) = (
        half_at(b, 0),
        u16::from_le_bytes([b[2], b[3]]),
        &b[4..8],
        &b[8..136],
    );
    for j in 0..8 {
        let high = ((h >> (2 * j)) & 3) as u8;
        let scale = d * (f32::from(nibble(l, j) | high << 4) - 32.0);
        table_run(&q[16 * j..][..16], &IQ4, scale, out);
    }
}

/// The values of E2M1, doubled.
const E2M1: [f32; 16] = [
    0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 0.0, -1.0, -2.0, -3.0, -4.0, -6.0, -8.0, -12.0,
];

// F[nibble]·2^(e−128)
pub(crate) fn mxfp4(b: &[u8], out: &mut Vec<f32>) {
    let e = u32::from(b[0]);
    let scale = f32::from_bits(if e < 2 {
        0x0020_0000 << e
    } else {
        (e - 1) << 23
    });
    table_run(&b[1..17], &E2M1, scale, out);
}

/// Half of an unsigned E4M3 (bias 7); 0x00 and 0x7F are zero.
fn ue4m3_half(byte: u8) -> f32 {
    let (exponent, mantissa) = (i32::from(byte >> 3 & 15), f32::from(byte & 7));
    match (byte, exponent) {
        (0 | 0x7f, _) => 0.0,
        (_, 0) => mantissa * 2f32.powi(-10),
        _ => (1.0 + mantissa / 8.0) * 2f32.powi(exponent - 8),
    }
}

// F[nibble]·(u(s_k)/2), runs of 16
pub(crate) fn nvfp4(b: &[u8], out: &mut Vec<f32>) {
    for k in 0..4 {
        table_run(&b[4 + 8 * k..][..8], &E2M1, ue4m3_half(b[k]), out);
    }
}
