//! Tensors of a base with a change added: the product of a low-rank pair, piece by piece, or the words of a delta.

use std::ops::Range;
use std::rc::Rc;

use half::f16;

use super::reordering::transposed;
use super::tensor::{Bytes, Merged, Moved, PIECE_ELEMENTS, Pair, Tensor};
use super::tensor_manifest::byte_len;
use crate::bf16;
use crate::error::{Refusal, Result, word};
use crate::formats::{Encoding, refuse_if, too_large, unreadable};

/// Maximum size of a pair, as f32 in memory.
const MAX_PAIR_BYTES: u64 = 1 << 30;

impl Moved {
    /// Reads the bytes `range` of the sum, which are computed from whole words.
    pub(super) async fn read(&self, range: Range<u64>) -> Result<Vec<u8>> {
        let width = self.width;
        let from = range.start / width * width;
        let to = range.end.next_multiple_of(width).min(self.base.len());
        let mut bytes = self.base.read(from..to).await?;
        let right = self.words.read(from..to).await?;
        let word = |a: u64, b| {
            if self.subtract {
                a.wrapping_sub(b)
            } else {
                a.wrapping_add(b)
            }
        };
        match width {
            1 => combine::<1>(&mut bytes, &right, word),
            2 => combine::<2>(&mut bytes, &right, word),
            4 => combine::<4>(&mut bytes, &right, word),
            _ => combine::<8>(&mut bytes, &right, word),
        }
        // This removes less than a word on either side.
        bytes.truncate((range.end - from) as usize);
        bytes.drain(..(range.start - from) as usize);
        Ok(bytes)
    }
}

impl Tensor {
    /// Makes the sums exact, if a pair was merged into it: F32 for a writer that rounds by itself, or, without `as_f32`, of its
    /// own dtype, to which the writer rounds them.
    #[must_use]
    pub(crate) fn summed_exactly(self, as_f32: bool) -> Self {
        let Some(Merged { base, pair }) = self.merged() else {
            return self;
        };
        let sums = Merged {
            base: base.clone(),
            pair: Pair {
                exact: true,
                ..pair.clone()
            },
        };
        let mut tensor = self.with_bytes(Bytes::Merged(Rc::new(sums)));
        if as_f32 {
            tensor.dtype = "F32".to_string();
        }
        tensor
    }

    /// True if an adapter's product changes its values; `None` if none was merged into it.
    pub(crate) fn is_changed(&self) -> Result<Option<bool>> {
        self.merged()
            .map(|merged| Ok(!merged.pair.load(None)?.is_zero()))
            .transpose()
    }
}

/// Replaces each word of `N` bytes of `left` by the low bytes of `word` of both: addition modulo 2⁶⁴ is addition modulo 2⁸ᴺ there.
fn combine<const N: usize>(left: &mut [u8], right: &[u8], word: impl Fn(u64, u64) -> u64) {
    let wide = |bytes: &[u8; N]| {
        let mut all = [0; 8];
        all[..N].copy_from_slice(bytes);
        u64::from_le_bytes(all)
    };
    for (a, b) in left
        .as_chunks_mut::<N>()
        .0
        .iter_mut()
        .zip(right.as_chunks::<N>().0)
    {
        let sum = word(wide(a), wide(b)).to_le_bytes();
        a.copy_from_slice(&sum[..N]);
    }
}

impl Pair {
    /// Refuses a pair that takes more memory than allowed.
    pub(crate) fn check_size(&self, artifact: &str) -> Result<()> {
        let bytes = |factor: &Tensor| byte_len("F32", &factor.shape);
        let all = bytes(&self.a)
            .zip(bytes(&self.b))
            .and_then(|(a, b)| a.checked_add(b));
        refuse_if(all.is_none_or(|all| all > MAX_PAIR_BYTES), || {
            too_large()
                .of(artifact)
                .subject(&self.name)
                .expected(format!("a pair of at most {MAX_PAIR_BYTES} bytes as f32"))
        })
    }

    /// Reads the pair, which is kept in memory as long as its tensor is read.
    pub(crate) fn load(&self, dtype: Option<Encoding>) -> Result<Factors> {
        let read = |factor: &Tensor| factor.pieces(PIECE_ELEMENTS)?.collect();
        let (a, b) = (read(&self.a)?, read(&self.b)?);
        let [rank, inner] = self.a.dims()[..] else {
            return Err(unreadable(&self.a.dtype, &self.a.name, "").into());
        };
        let outer = self.b.dims()[0];
        let (left, right, row) = if self.transposed {
            (transposed(&a, inner), transposed(&b, rank), outer)
        } else {
            (b, a, inner)
        };
        Ok(Factors {
            name: self.name.clone(),
            rank,
            row,
            left,
            right,
            scale: self.scale,
            dtype: dtype.filter(|_| !self.exact),
            sum: Vec::new(),
            squares: [0.0; 2],
        })
    }
}

/// Rounds to the nearest value of a dtype, half to even. Blocks are merged into f32.
fn rounded(value: f32, dtype: Option<Encoding>) -> f32 {
    match dtype {
        Some(Encoding::F16) => f16::from_f32(value).to_f32(),
        Some(Encoding::Bf16) => bf16::widen(bf16::round_nearest(value)),
        _ => value,
    }
}

/// A pair in memory: the change of the tensor's value (n, c) is scale · Σₖ left\[n, k\]·right\[k, c\].
pub(crate) struct Factors {
    name: String,
    rank: usize,
    /// Number of values in a row of the tensor.
    row: usize,
    left: Vec<f32>,
    right: Vec<f32>,
    scale: f32,
    /// dtype that sums are rounded to; `None` if they stay as they are in f32.
    dtype: Option<Encoding>,
    /// Sums of a part of a row.
    sum: Vec<f32>,
    /// Sums of the squares of the additions' rounding errors so far, and of the products that were added.
    pub(super) squares: [f64; 2],
}

impl Factors {
    /// Adds the product to the tensor's values from `first` on, and rounds to its dtype: W ← round(W + scale·Σₖ B[·, k]·A[k, ·]) in f32, k
    /// ascending. Each value depends only on its position, wherever a piece begins.
    ///
    /// # Errors
    /// `export.overflow` if the dtype turns a finite value into infinity.
    pub(crate) fn add(&mut self, first: u64, values: &mut [f32]) -> Result<()> {
        let row = self.row as u64;
        let (mut at, mut overflows) = (0, 0);
        while at < values.len() {
            let place = first + at as u64;
            // The position is inside the pair, which is in memory.
            let (n, column) = ((place / row) as usize, (place % row) as usize);
            let count = (self.row - column).min(values.len() - at);
            self.sum.clear();
            self.sum.resize(count, 0.0);
            for k in 0..self.rank {
                let factor = self.left[n * self.rank + k];
                let right = &self.right[k * self.row + column..][..count];
                self.sum
                    .iter_mut()
                    .zip(right)
                    .for_each(|(sum, value)| *sum += factor * value);
            }
            for (value, sum) in values[at..at + count].iter_mut().zip(&self.sum) {
                let exact = *value + self.scale * sum;
                let rounded = rounded(exact, self.dtype);
                overflows += usize::from(exact.is_finite() && !rounded.is_finite());
                // The difference of the two is exact in f64, even if the product is beyond the last digit of the value.
                let change = f64::from(self.scale) * f64::from(*sum);
                self.squares[0] += (f64::from(exact) - f64::from(*value) - change).powi(2);
                self.squares[1] += change.powi(2);
                *value = rounded;
            }
            at += count;
        }
        refuse_if(overflows > 0, || {
            Refusal::new(word!("export.overflow"))
                .stage("read")
                .subject(&self.name)
                .expected("values that the base's dtype can hold")
                .found(format!("{overflows} that are too large"))
        })
    }

    /// True if one of its factors is zero throughout, so that nothing changes.
    pub(crate) fn is_zero(&self) -> bool {
        let zero = |factor: &[f32]| factor.iter().all(|value| *value == 0.0);
        self.scale == 0.0 || zero(&self.left) || zero(&self.right)
    }

    /// 2-norm of the change, scale · √Σₖₗ (BᵀB)\[k, l\]·(A Aᵀ)\[k, l\], in f64.
    pub(crate) fn norm(&self) -> f64 {
        let wide = |value: &f32| f64::from(*value);
        let column = |k: usize| self.left.iter().skip(k).step_by(self.rank).map(wide);
        let row = |k: usize| self.right[k * self.row..][..self.row].iter().map(wide);
        let product = |k: usize, l: usize| -> f64 {
            let left: f64 = column(k).zip(column(l)).map(|(a, b)| a * b).sum();
            let right: f64 = row(k).zip(row(l)).map(|(a, b)| a * b).sum();
            left * right
        };
        let below = |k: usize| (0..k).map(|l| 2.0 * product(k, l)).sum::<f64>() + product(k, k);
        f64::from(self.scale).abs() * (0..self.rank).map(below).sum::<f64>().max(0.0).sqrt()
    }
}
