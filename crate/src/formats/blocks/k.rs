//! Decodes blocks of 256 values in runs, each with its own scale: Q2_K to Q6_K.

use super::bits::{half_at, hi, lo};

// (d·lo(s_k))·q2 − e·hi(s_k), runs of 16
pub(crate) fn q2_k(b: &[u8], out: &mut Vec<f32>) {
    let (s, q) = (&b[..16], &b[16..80]);
    let (d, e) = (half_at(b, 80), half_at(b, 82));
    for (k, &s) in s.iter().enumerate() {
        let (half, shift, run) = (k / 8, 2 * (k % 8 / 2), k % 2);
        let (scale, min) = (d * f32::from(lo(s)), e * f32::from(hi(s)));
        let bytes = &q[32 * half + 16 * run..][..16];
        out.extend(
            bytes
                .iter()
                .map(|&q| scale * f32::from((q >> shift) & 3) - min),
        );
    }
}

// (d·S_k)·(q2 − (bit of H ? 0 : 4)), runs of 16; S_k is six bits, minus 32
pub(crate) fn q3_k(b: &[u8], out: &mut Vec<f32>) {
    let (h, q, s, d) = (&b[..32], &b[32..96], &b[96..108], half_at(b, 108));
    for k in 0..16 {
        let (half, index, run) = (k / 8, k % 8 / 2, k % 2);
        let low = if k < 8 { lo(s[k]) } else { hi(s[k - 8]) };
        let high = (s[8 + k % 4] >> (2 * (k / 4))) & 3;
        let scale = d * (f32::from(low | high << 4) - 32.0);
        for l in 16 * run..16 * run + 16 {
            let q2 = (q[32 * half + l] >> (2 * index)) & 3;
            let high = (h[l] >> (4 * half + index)) & 1;
            let less = if high == 1 { 0.0 } else { 4.0 };
            out.push(scale * (f32::from(q2) - less));
        }
    }
}

/// The six-bit scale and minimum of run `j`, as packed in Q4_K and Q5_K.
fn scale_min(s: &[u8], j: usize) -> (f32, f32) {
    let (scale, min) = if j < 4 {
        (s[j] & 63, s[j + 4] & 63)
    } else {
        (
            lo(s[j + 4]) | (s[j - 4] >> 6) << 4,
            hi(s[j + 4]) | (s[j] >> 6) << 4,
        )
    };
    (f32::from(scale), f32::from(min))
}

// (d·sc_j)·(q + 16·bit_j(H_l)) − e·mn_j, runs of 32
fn runs_of_32(b: &[u8], h: &[u8], q: &[u8], out: &mut Vec<f32>) {
    let (d, e, s) = (half_at(b, 0), half_at(b, 2), &b[4..16]);
    for j in 0..8 {
        let (scale, min) = scale_min(s, j);
        let (scale, min) = (d * scale, e * min);
        let nibble = if j % 2 == 0 { lo } else { hi };
        let bytes = q[32 * (j / 2)..][..32].iter().zip(h);
        out.extend(bytes.map(|(&q, &h)| scale * f32::from(nibble(q) | ((h >> j) & 1) << 4) - min));
    }
}

// Four bits: H is zero
pub(crate) fn q4_k(b: &[u8], out: &mut Vec<f32>) {
    runs_of_32(b, &[0; 32], &b[16..144], out);
}

// Five bits
pub(crate) fn q5_k(b: &[u8], out: &mut Vec<f32>) {
    runs_of_32(b, &b[16..48], &b[48..176], out);
}

// (d·s)·(q − 32), six bits: four in L, two in H
pub(crate) fn q6_k(b: &[u8], out: &mut Vec<f32>) {
    let (low, high, s, d) = (&b[..128], &b[128..192], &b[192..208], half_at(b, 208));
    for k in 0..8 {
        let (half, run) = (k / 4, k % 4);
        let nibble = if run < 2 { lo } else { hi };
        for l in 0..32 {
            let q = nibble(low[64 * half + l + 32 * (run % 2)])
                | ((high[32 * half + l] >> (2 * run)) & 3) << 4;
            let scale = d * f32::from(s[8 * half + 2 * run + l / 16] as i8);
            out.push(scale * (f32::from(q) - 32.0));
        }
    }
}
