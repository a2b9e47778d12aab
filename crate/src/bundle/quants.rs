//! ggml's blocks → f32. All arithmetic is f32 in the order written, so every value equals that of ggml's own `dequantize_row_*` bit for
//! bit.

use half::f16;

/// One block format: sizes, and the function that appends the values of one block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    id: u32,
    pub(crate) elements: usize,
    pub(crate) bytes: usize,
    pub(crate) decode: fn(&[u8], &mut Vec<f32>),
}

impl PartialEq for Block {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Block {}

const BLOCKS: [Block; 18] = [
    Block { id: 2, elements: 32, bytes: 18, decode: q4_0 },
    Block { id: 3, elements: 32, bytes: 20, decode: q4_1 },
    Block { id: 6, elements: 32, bytes: 22, decode: q5_0 },
    Block { id: 7, elements: 32, bytes: 24, decode: q5_1 },
    Block { id: 8, elements: 32, bytes: 34, decode: q8_0 },
    Block { id: 10, elements: 256, bytes: 84, decode: q2_k },
    Block { id: 11, elements: 256, bytes: 110, decode: q3_k },
    Block { id: 12, elements: 256, bytes: 144, decode: q4_k },
    Block { id: 13, elements: 256, bytes: 176, decode: q5_k },
    Block { id: 14, elements: 256, bytes: 210, decode: q6_k },
    Block { id: 20, elements: 32, bytes: 18, decode: iq4_nl },
    Block { id: 23, elements: 256, bytes: 136, decode: iq4_xs },
    Block { id: 34, elements: 256, bytes: 54, decode: tq1_0 },
    Block { id: 35, elements: 256, bytes: 66, decode: tq2_0 },
    Block { id: 39, elements: 32, bytes: 17, decode: mxfp4 },
    Block { id: 40, elements: 64, bytes: 36, decode: nvfp4 },
    Block { id: 41, elements: 128, bytes: 18, decode: q1_0 },
    Block { id: 42, elements: 64, bytes: 18, decode: q2_0 },
];

impl Block {
    /// The format of a ggml type number, where there is a decoder.
    pub(crate) fn of_id(id: u32) -> Option<Self> {
        BLOCKS.into_iter().find(|block| block.id == id)
    }
}

fn half_at(b: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([b[at], b[at + 1]]).to_f32()
}

fn word_at(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

fn lo(byte: u8) -> u8 {
    byte & 15
}

fn hi(byte: u8) -> u8 {
    byte >> 4
}

fn bit(word: u32, n: usize) -> u8 {
    ((word >> n) & 1) as u8
}

// (lo_j − 8)·d, then (hi_j − 8)·d
fn q4_0(b: &[u8], out: &mut Vec<f32>) {
    let d = half_at(b, 0);
    let q = &b[2..18];
    out.extend(q.iter().map(|&q| (f32::from(lo(q)) - 8.0) * d));
    out.extend(q.iter().map(|&q| (f32::from(hi(q)) - 8.0) * d));
}

// q·d + m
fn q4_1(b: &[u8], out: &mut Vec<f32>) {
    let (d, m) = (half_at(b, 0), half_at(b, 2));
    let q = &b[4..20];
    out.extend(q.iter().map(|&q| f32::from(lo(q)) * d + m));
    out.extend(q.iter().map(|&q| f32::from(hi(q)) * d + m));
}

// (q + 16·bit_j(H) − 16)·d
fn q5_0(b: &[u8], out: &mut Vec<f32>) {
    let (d, h) = (half_at(b, 0), word_at(b, 2));
    let q = &b[6..22];
    out.extend(q.iter().enumerate().map(|(j, &q)| (f32::from(lo(q) | bit(h, j) << 4) - 16.0) * d));
    out.extend(q.iter().enumerate().map(|(j, &q)| (f32::from(hi(q) | bit(h, j + 16) << 4) - 16.0) * d));
}

// (q + 16·bit_j(H))·d + m
fn q5_1(b: &[u8], out: &mut Vec<f32>) {
    let (d, m, h) = (half_at(b, 0), half_at(b, 2), word_at(b, 4));
    let q = &b[8..24];
    out.extend(q.iter().enumerate().map(|(j, &q)| f32::from(lo(q) | bit(h, j) << 4) * d + m));
    out.extend(q.iter().enumerate().map(|(j, &q)| f32::from(hi(q) | bit(h, j + 16) << 4) * d + m));
}

// q·d
fn q8_0(b: &[u8], out: &mut Vec<f32>) {
    let d = half_at(b, 0);
    out.extend(b[2..34].iter().map(|&q| f32::from(q as i8) * d));
}

// (d·lo(s_k))·q2 − e·hi(s_k), runs of 16
fn q2_k(b: &[u8], out: &mut Vec<f32>) {
    let (s, q) = (&b[..16], &b[16..80]);
    let (d, e) = (half_at(b, 80), half_at(b, 82));
    for (k, &s) in s.iter().enumerate() {
        let (half, shift, run) = (k / 8, 2 * (k % 8 / 2), k % 2);
        let (scale, min) = (d * f32::from(lo(s)), e * f32::from(hi(s)));
        let bytes = &q[32 * half + 16 * run..][..16];
        out.extend(bytes.iter().map(|&q| scale * f32::from((q >> shift) & 3) - min));
    }
}

// (d·S_k)·(q2 − (bit of H ? 0 : 4)), runs of 16; S_k has six bits, less 32
fn q3_k(b: &[u8], out: &mut Vec<f32>) {
    let (h, q, s, d) = (&b[..32], &b[32..96], &b[96..108], half_at(b, 108));
    for k in 0..16 {
        let (half, index, run) = (k / 8, k % 8 / 2, k % 2);
        let low = if k < 8 { lo(s[k]) } else { hi(s[k - 8]) };
        let high = (s[8 + k % 4] >> (2 * (k / 4))) & 3;
        let scale = d * (f32::from(low | high << 4) - 32.0);
        for l in 16 * run..16 * run + 16 {
            let q2 = (q[32 * half + l] >> (2 * index)) & 3;
            let less = if (h[l] >> (4 * half + index)) & 1 == 1 { 0.0 } else { 4.0 };
            out.push(scale * (f32::from(q2) - less));
        }
    }
}

/// Six-bit scale and minimum of run `j`, as Q4_K and Q5_K pack them.
fn scale_min(s: &[u8], j: usize) -> (f32, f32) {
    let (scale, min) =
        if j < 4 { (s[j] & 63, s[j + 4] & 63) } else { (lo(s[j + 4]) | (s[j - 4] >> 6) << 4, hi(s[j + 4]) | (s[j] >> 6) << 4) };
    (f32::from(scale), f32::from(min))
}

// (d·sc_j)·q − e·mn_j, runs of 32
fn q4_k(b: &[u8], out: &mut Vec<f32>) {
    let (d, e, s, q) = (half_at(b, 0), half_at(b, 2), &b[4..16], &b[16..144]);
    for j in 0..8 {
        let (scale, min) = scale_min(s, j);
        let (scale, min) = (d * scale, e * min);
        let nibble = if j % 2 == 0 { lo } else { hi };
        out.extend(q[32 * (j / 2)..][..32].iter().map(|&q| scale * f32::from(nibble(q)) - min));
    }
}

// as Q4_K with q + 16·bit_j(H_l)
fn q5_k(b: &[u8], out: &mut Vec<f32>) {
    let (d, e, s, h, q) = (half_at(b, 0), half_at(b, 2), &b[4..16], &b[16..48], &b[48..176]);
    for j in 0..8 {
        let (scale, min) = scale_min(s, j);
        let (scale, min) = (d * scale, e * min);
        let nibble = if j % 2 == 0 { lo } else { hi };
        let bytes = q[32 * (j / 2)..][..32].iter().zip(h);
        out.extend(bytes.map(|(&q, &h)| scale * f32::from(nibble(q) | ((h >> j) & 1) << 4) - min));
    }
}

// (d·s)·(q − 32), six bits: four in L, two in H
fn q6_k(b: &[u8], out: &mut Vec<f32>) {
    let (low, high, s, d) = (&b[..128], &b[128..192], &b[192..208], half_at(b, 208));
    for (half, run) in [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (1, 3)] {
        let nibble = if run < 2 { lo } else { hi };
        for l in 0..32 {
            let q = nibble(low[64 * half + l + 32 * (run % 2)]) | ((high[32 * half + l] >> (2 * run)) & 3) << 4;
            let scale = d * f32::from(s[8 * half + 2 * run + l / 16] as i8);
            out.push(scale * (f32::from(q) - 32.0));
        }
    }
}

/// The values of IQ4's sixteen steps.
const IQ4: [f32; 16] = [-127.0, -104.0, -83.0, -65.0, -49.0, -35.0, -22.0, -10.0, 1.0, 13.0, 25.0, 38.0, 53.0, 69.0, 89.0, 113.0];

fn table_run(bytes: &[u8], table: &[f32; 16], scale: f32, out: &mut Vec<f32>) {
    out.extend(bytes.iter().map(|&q| scale * table[usize::from(lo(q))]));
    out.extend(bytes.iter().map(|&q| scale * table[usize::from(hi(q))]));
}

// d·T[nibble]
fn iq4_nl(b: &[u8], out: &mut Vec<f32>) {
    table_run(&b[2..18], &IQ4, half_at(b, 0), out);
}

// (d·s)·T[nibble], runs of 32
fn iq4_xs(b: &[u8], out: &mut Vec<f32>) {
    let (d, h, l, q) = (half_at(b, 0), u16::from_le_bytes([b[2], b[3]]), &b[4..8], &b[8..136]);
    for j in 0..8 {
        let low = if j % 2 == 0 { lo(l[j / 2]) } else { hi(l[j / 2]) };
        let high = ((h >> (2 * j)) & 3) as u8;
        table_run(&q[16 * j..][..16], &IQ4, d * (f32::from(low | high << 4) - 32.0), out);
    }
}

// digit n of byte b = ((b·3ⁿ mod 256)·3) >> 8; (digit − 1)·d
fn tq1_0(b: &[u8], out: &mut Vec<f32>) {
    let d = half_at(b, 52);
    let mut digits = |bytes: &[u8], count: u32| {
        for n in 0..count {
            let power = 3u8.pow(n);
            out.extend(bytes.iter().map(|b| (f32::from((u16::from(b.wrapping_mul(power)) * 3) >> 8) - 1.0) * d));
        }
    };
    digits(&b[..32], 5);
    digits(&b[32..48], 5);
    digits(&b[48..52], 4);
}

// (q2 − 1)·d
fn tq2_0(b: &[u8], out: &mut Vec<f32>) {
    let d = half_at(b, 64);
    for (half, shift) in [(0, 0), (0, 2), (0, 4), (0, 6), (1, 0), (1, 2), (1, 4), (1, 6)] {
        out.extend(b[32 * half..][..32].iter().map(|&q| (f32::from((q >> shift) & 3) - 1.0) * d));
    }
}

/// Twice the values of E2M1.
const E2M1: [f32; 16] = [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 0.0, -1.0, -2.0, -3.0, -4.0, -6.0, -8.0, -12.0];

// F[nibble]·2^(e−128)
fn mxfp4(b: &[u8], out: &mut Vec<f32>) {
    let e = u32::from(b[0]);
    let scale = f32::from_bits(if e < 2 { 0x0020_0000 << e } else { (e - 1) << 23 });
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
fn nvfp4(b: &[u8], out: &mut Vec<f32>) {
    for k in 0..4 {
        table_run(&b[4 + 8 * k..][..8], &E2M1, ue4m3_half(b[k]), out);
    }
}

// bit ? d : −d, low bit first
fn q1_0(b: &[u8], out: &mut Vec<f32>) {
    let d = half_at(b, 0);
    out.extend(b[2..18].iter().flat_map(|&q| (0..8).map(move |n| if q >> n & 1 == 1 { d } else { -d })));
}

// (q − 1)·d, low pair first
fn q2_0(b: &[u8], out: &mut Vec<f32>) {
    let d = half_at(b, 0);
    out.extend(b[2..18].iter().flat_map(|&q| (0..4).map(move |n| (f32::from(q >> (2 * n) & 3) - 1.0) * d)));
}
