//! Decodes blocks whose numbers select vectors of a code book: IQ1, IQ2 and IQ3. Blocks have 256 values.

use half::f16;

use super::bits::{half_at, nibble, word_at};

/// The code books: 16 bits for each vector, with the first value in the lowest bits. tests/golden/make_code_books.py takes them from
/// gguf-py (MIT); LICENSE.gguf in this folder is its licence.
const VECTORS: &[u8] = include_bytes!("code_books.bin");

/// A code book of vectors of `N` values, each of which is 16/N bits that select one of `values`.
struct Book<const N: usize> {
    /// Index of its first vector among those of all books.
    first: usize,
    values: [f32; 8],
}

const IQ2: [f32; 8] = [8.0, 25.0, 43.0, 0.0, 0.0, 0.0, 0.0, 0.0];
const IQ2_XXS: Book<8> = Book {
    first: 0,
    values: IQ2,
};
const IQ2_XS: Book<8> = Book {
    first: 256,
    values: IQ2,
};
const IQ2_S: Book<8> = Book {
    first: 768,
    values: IQ2,
};
const IQ3_XXS: Book<4> = Book {
    first: 1792,
    values: [4.0, 12.0, 20.0, 28.0, 36.0, 44.0, 52.0, 62.0],
};
const IQ3_S: Book<4> = Book {
    first: 2048,
    values: [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0],
};
const IQ1: Book<8> = Book {
    first: 2560,
    values: [-1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
};

impl<const N: usize> Book<N> {
    /// The vector with the index `low | high·256`.
    fn vector(&self, low: u8, high: u8) -> [f32; N] {
        let at = 2 * (self.first + usize::from(u16::from_le_bytes([low, high])));
        let packed = u16::from_le_bytes([VECTORS[at], VECTORS[at + 1]]);
        let width = 16 / N;
        std::array::from_fn(|j| {
            self.values[usize::from(packed >> (width * j)) & ((1 << width) - 1) & 7]
        })
    }
}

/// Completes seven signs by an eighth: the number of negative ones is even.
fn even_signs(seven: u32) -> u8 {
    let seven = (seven & 0x7f) as u8;
    seven | ((seven.count_ones() & 1) as u8) << 7
}

// (scale·v)·±1, minus if the bit is set
fn push_signed<const N: usize>(scale: f32, vector: [f32; N], signs: u8, out: &mut Vec<f32>) {
    out.extend(
        vector
            .iter()
            .enumerate()
            .map(|(j, v)| scale * v * if signs >> j & 1 == 1 { -1.0 } else { 1.0 }),
    );
}

fn short_at(b: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([b[at], b[at + 1]])
}

// Runs of 32: four indices of vectors, then a word w with four times seven signs and s = w >> 28; scale (d·(0.5 + s))·0.25
pub(crate) fn iq2_xxs(b: &[u8], out: &mut Vec<f32>) {
    let d = half_at(b, 0);
    for run in b[2..66].as_chunks::<8>().0 {
        let word = word_at(run, 4);
        let scale = d * (0.5 + f32::from((word >> 28) as u8)) * 0.25;
        for (k, &vector) in run[..4].iter().enumerate() {
            push_signed(
                scale,
                IQ2_XXS.vector(vector, 0),
                even_signs(word >> (7 * k)),
                out,
            );
        }
    }
}

// Indices of nine bits with seven signs each; runs of 16 have the scale (d·(0.5 + s_k))·0.25
pub(crate) fn iq2_xs(b: &[u8], out: &mut Vec<f32>) {
    let (d, s) = (half_at(b, 0), &b[66..74]);
    for k in 0..32 {
        let scale = d * (0.5 + f32::from(nibble(s, k / 2))) * 0.25;
        let [low, high] = short_at(b, 2 + 2 * k).to_le_bytes();
        push_signed(
            scale,
            IQ2_XS.vector(low, high & 1),
            even_signs(u32::from(high >> 1)),
            out,
        );
    }
}

// Indices of 8 + 2 bits, eight signs each; scales as in IQ2_XS
pub(crate) fn iq2_s(b: &[u8], out: &mut Vec<f32>) {
    let (d, q, signs, h, s) = (half_at(b, 0), &b[2..34], &b[34..66], &b[66..74], &b[74..82]);
    for k in 0..32 {
        let scale = d * (0.5 + f32::from(nibble(s, k / 2))) * 0.25;
        push_signed(
            scale,
            IQ2_S.vector(q[k], h[k / 4] >> (2 * (k % 4)) & 3),
            signs[k],
            out,
        );
    }
}

// As IQ2_XXS, but two vectors of four values for each seven signs; scale (d·(0.5 + s))·0.5
pub(crate) fn iq3_xxs(b: &[u8], out: &mut Vec<f32>) {
    let (d, q) = (half_at(b, 0), &b[2..66]);
    for j in 0..8 {
        let word = word_at(b, 66 + 4 * j);
        let scale = d * (0.5 + f32::from((word >> 28) as u8)) * 0.5;
        for k in 0..4 {
            let signs = even_signs(word >> (7 * k));
            push_signed(scale, IQ3_XXS.vector(q[8 * j + 2 * k], 0), signs, out);
            push_signed(
                scale,
                IQ3_XXS.vector(q[8 * j + 2 * k + 1], 0),
                signs >> 4,
                out,
            );
        }
    }
}

// Indices of 8 + 1 bits of vectors of four values, a sign for each value; runs of 32 have the scale d·(1 + 2·s_j)
pub(crate) fn iq3_s(b: &[u8], out: &mut Vec<f32>) {
    let (d, q, h, signs, s) = (
        half_at(b, 0),
        &b[2..66],
        &b[66..74],
        &b[74..106],
        &b[106..110],
    );
    for k in 0..64 {
        let scale = d * f32::from(1 + 2 * nibble(s, k / 8));
        push_signed(
            scale,
            IQ3_S.vector(q[k], h[k / 8] >> (k % 8) & 1),
            signs[k / 2] >> (4 * (k % 2)),
            out,
        );
    }
}

/// Offset that IQ1 adds to the values of its vectors, or subtracts from them.
const DELTA: f32 = 0.125;

// scale·(v ± DELTA), minus if `down`
fn push_shifted(scale: f32, vector: [f32; 8], down: bool, out: &mut Vec<f32>) {
    let delta = if down { -DELTA } else { DELTA };
    out.extend(vector.iter().map(|v| scale * (v + delta)));
}

// Runs of 32: a word w with four times three high bits, s = (w >> 12) & 7, and a bit that shifts down; scale d·(2·s + 1)
pub(crate) fn iq1_s(b: &[u8], out: &mut Vec<f32>) {
    let (d, q) = (half_at(b, 0), &b[2..34]);
    for j in 0..8 {
        let word = short_at(b, 34 + 2 * j);
        let scale = d * f32::from(2 * (word >> 12 & 7) + 1);
        for k in 0..4 {
            push_shifted(
                scale,
                IQ1.vector(q[4 * j + k], (word >> (3 * k) & 7) as u8),
                word >> 15 == 1,
                out,
            );
        }
    }
}

// Nibbles with three high bits and one that shifts down; runs of 16 have the scale d·(2·s_k + 1), with three bits for each s. The highest
// four bits of each word of scales form d.
pub(crate) fn iq1_m(b: &[u8], out: &mut Vec<f32>) {
    let (q, h) = (&b[..32], &b[32..48]);
    let words: [u16; 4] = std::array::from_fn(|j| short_at(b, 48 + 2 * j));
    let d = f16::from_bits(
        words[0] >> 12 | words[1] >> 12 << 4 | words[2] >> 12 << 8 | words[3] >> 12 << 12,
    )
    .to_f32();
    for k in 0..32 {
        let s = words[k / 8] >> (3 * (k / 2 % 4)) & 7;
        let high = nibble(h, k);
        push_shifted(
            d * f32::from(2 * s + 1),
            IQ1.vector(q[k], high & 7),
            high & 8 != 0,
            out,
        );
    }
}
