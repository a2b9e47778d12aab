//! Adds the product of a low-rank pair to a base's tensor, piece by piece.

use half::f16;

use super::config::LoraConfig;
use crate::bf16;
use crate::error::{Error, Refusal, Result, word};
use crate::formats::{ByteSource, Encoding, for_each_chunk};
use crate::state::ReceiptFile;

/// Maximum size of a pair, as f32 in memory.
const MAX_PAIR_BYTES: u64 = 1 << 30;

/// An adapter that was merged into a model.
#[derive(Debug, Clone)]
pub struct MergedAdapter {
    /// Name of the file of its weights.
    pub file: String,
    /// Size of that file in bytes.
    pub bytes: u64,
    /// Configuration of the adapter.
    pub config: LoraConfig,
    /// Its configuration file, with its checksum, and its weights.
    pub inputs: Vec<ReceiptFile>,
}

/// Position of one factor of a pair in its file.
#[derive(Debug, Clone, Copy)]
pub(in crate::bundle) struct Factor {
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) encoding: Encoding,
    pub(super) rows: u64,
    pub(super) columns: u64,
}

/// A pair that is added to a tensor, W + scale·(B·A) with A [r, in] and B [out, r].
#[derive(Debug, Clone)]
pub(in crate::bundle) struct Merge {
    /// Index of the adapter's file among the files of the bundle.
    pub(super) source: usize,
    /// Name of the tensor.
    pub(super) name: String,
    pub(super) a: Factor,
    pub(super) b: Factor,
    pub(super) scale: f32,
    /// True if the tensor is [in, out], so that the product is transposed.
    pub(super) transposed: bool,
    /// True if the sum stays as it is in f32, whatever the tensor's dtype.
    pub(in crate::bundle) exact: bool,
}

impl Merge {
    /// Returns a merge that leaves its sum as it is in f32.
    pub(in crate::bundle) fn exactly(&self) -> Self {
        Self {
            exact: true,
            ..self.clone()
        }
    }

    /// Refuses a pair that takes more memory than allowed.
    pub(super) fn check_size(&self, artifact: &str) -> Result<()> {
        let bytes = |factor: &Factor| factor.rows.checked_mul(factor.columns)?.checked_mul(4);
        let all = bytes(&self.a)
            .zip(bytes(&self.b))
            .and_then(|(a, b)| a.checked_add(b));
        if all.is_some_and(|all| all <= MAX_PAIR_BYTES) {
            return Ok(());
        }
        let refusal = Refusal::new(word!("source.too-large"))
            .of(artifact)
            .subject(&self.name);
        Err(refusal
            .expected(format!("a pair of at most {MAX_PAIR_BYTES} bytes as f32"))
            .into())
    }

    /// Reads the pair, which is kept in memory as long as its tensor is read.
    pub(in crate::bundle) fn load(
        &self,
        files: &[Box<dyn ByteSource>],
        dtype: Option<Encoding>,
    ) -> Result<Factors> {
        let source = files[self.source].as_ref();
        let (a, b) = (read(source, &self.a)?, read(source, &self.b)?);
        let too_large = |_| {
            Error::from(
                Refusal::new(word!("source.too-large"))
                    .stage("read")
                    .of(source.name())
                    .subject(&self.name),
            )
        };
        let whole = |count: u64| usize::try_from(count).map_err(too_large);
        let (rank, inner, outer) = (
            whole(self.a.rows)?,
            whole(self.a.columns)?,
            whole(self.b.rows)?,
        );
        let (left, right, row) = if self.transposed {
            (transposed(&a, inner), transposed(&b, rank), outer)
        } else {
            (b, a, inner)
        };
        let rounding = match dtype {
            _ if self.exact => Rounding::None,
            Some(Encoding::F16) => Rounding::F16,
            Some(Encoding::Bf16) => Rounding::Bf16,
            _ => Rounding::None,
        };
        Ok(Factors {
            name: self.name.clone(),
            rank,
            row,
            left,
            right,
            scale: self.scale,
            rounding,
            sum: Vec::new(),
            error: 0.0,
            squares: [0.0; 2],
        })
    }
}

fn read(source: &dyn ByteSource, factor: &Factor) -> Result<Vec<f32>> {
    let mut values = Vec::new();
    for_each_chunk(
        source,
        factor.begin,
        factor.end,
        factor.encoding.unit().0,
        |piece| {
            factor.encoding.decode(piece, &mut values);
            Ok(())
        },
    )?;
    Ok(values)
}

/// Transposes a flat matrix: [rows, width] → [width, rows].
fn transposed(values: &[f32], width: usize) -> Vec<f32> {
    (0..width)
        .flat_map(|column| values.iter().skip(column).step_by(width).copied())
        .collect()
}

/// Rounding to the dtype of the merged tensor. Blocks are merged into f32.
#[derive(Debug, Clone, Copy)]
enum Rounding {
    None,
    F16,
    Bf16,
}

impl Rounding {
    /// Rounds to the nearest value of the dtype, half to even.
    fn round(self, value: f32) -> f32 {
        match self {
            Self::None => value,
            Self::F16 => f16::from_f32(value).to_f32(),
            Self::Bf16 => bf16::widen(bf16::round_nearest(value)),
        }
    }
}

/// A pair in memory: the change of the tensor's value (n, c) is scale · Σₖ left\[n, k\]·right\[k, c\].
pub(in crate::bundle) struct Factors {
    name: String,
    rank: usize,
    /// Number of values in a row of the tensor.
    row: usize,
    left: Vec<f32>,
    right: Vec<f32>,
    scale: f32,
    rounding: Rounding,
    /// Sums of a part of a row.
    sum: Vec<f32>,
    error: f32,
    /// Sums of the squares of the additions' rounding errors, and of the products that were added.
    squares: [f64; 2],
}

impl Factors {
    /// Adds the product to the tensor's values from `first` on, and rounds to its dtype: W ← round(W + scale·Σₖ B[·, k]·A[k, ·]) in f32, k
    /// ascending. Each value depends only on its position, wherever a piece begins.
    ///
    /// # Errors
    /// `export.overflow` if the dtype turns a finite value into infinity.
    pub(in crate::bundle) fn add(&mut self, first: u64, values: &mut [f32]) -> Result<()> {
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
                let rounded = self.rounding.round(exact);
                overflows += usize::from(exact.is_finite() && !rounded.is_finite());
                self.error = self.error.max((rounded - exact).abs());
                // The difference of the two is exact in f64, even if the product is beyond the last digit of the value.
                let change = f64::from(self.scale) * f64::from(*sum);
                self.squares[0] += (f64::from(exact) - f64::from(*value) - change).powi(2);
                self.squares[1] += change.powi(2);
                *value = rounded;
            }
            at += count;
        }
        if overflows > 0 {
            let refusal = Refusal::new(word!("export.overflow"))
                .stage("read")
                .subject(&self.name);
            return Err(refusal
                .expected("values that the base's dtype can hold")
                .found(format!("{overflows} that are too large"))
                .into());
        }
        Ok(())
    }

    /// Returns whether one of its factors is zero throughout, so that nothing changes.
    pub(in crate::bundle) fn is_zero(&self) -> bool {
        self.scale == 0.0
            || [&self.left, &self.right]
                .into_iter()
                .any(|factor| factor.iter().all(|value| *value == 0.0))
    }

    /// Returns the 2-norm of the change, scale · √Σₖₗ (BᵀB)\[k, l\]·(A Aᵀ)\[k, l\], in f64.
    pub(in crate::bundle) fn norm(&self) -> f64 {
        let column = |k: usize| {
            self.left
                .iter()
                .skip(k)
                .step_by(self.rank)
                .map(|value| f64::from(*value))
        };
        let row = |k: usize| {
            self.right[k * self.row..][..self.row]
                .iter()
                .map(|value| f64::from(*value))
        };
        let product = |k: usize, l: usize| -> f64 {
            let left: f64 = column(k).zip(column(l)).map(|(a, b)| a * b).sum();
            let right: f64 = row(k).zip(row(l)).map(|(a, b)| a * b).sum();
            left * right
        };
        let below = |k: usize| (0..k).map(|l| 2.0 * product(k, l)).sum::<f64>() + product(k, k);
        f64::from(self.scale).abs() * (0..self.rank).map(below).sum::<f64>().max(0.0).sqrt()
    }

    /// Returns the sums of the squares of all rounding errors of the additions in f32 so far, and of the products that were added.
    pub(in crate::bundle) fn sum_squares(&self) -> [f64; 2] {
        self.squares
    }

    /// Returns the largest rounding error so far.
    pub(in crate::bundle) fn rounding_error(&self) -> f32 {
        self.error
    }
}
