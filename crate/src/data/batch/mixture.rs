//! The shares of the files in the epochs of a run.

use super::examples::ExampleSlice;
use super::pack::{Pieces, shuffle};
use crate::error::{Error, Fault, Result};

/// Returns how many of `count` pieces have come after `epochs` by the part of a weight that is no whole number: round(e·n·f).
fn drawn(count: usize, fraction: f64, epochs: f64) -> f64 {
    (epochs * count as f64 * fraction).round()
}

/// The number of times that the rows of each file come in an epoch.
#[derive(Debug, Clone, Default)]
pub(super) struct Mixture {
    /// Index of the row after the last one of each file, and its weight; empty if all rows come once.
    files: Vec<(u32, f64)>,
}

impl Mixture {
    /// Checks that the weights are those of the files.
    ///
    /// # Errors
    /// `config.invalid` for weights of a stream, or another number of them than of files.
    pub fn of(weights: &[f64], file_ends: &[u32], rows: bool) -> Result<Self> {
        if !weights.is_empty() && (!rows || weights.len() != file_ends.len()) {
            let rule = if rows {
                format!("one for each of {} files", file_ends.len())
            } else {
                "none where the data are one stream".into()
            };
            return Err(Error::InvalidConfig(vec![Fault::new(
                "data_weights",
                rule,
                format!("{weights:?}"),
            )]));
        }
        Ok(Self {
            files: file_ends
                .iter()
                .copied()
                .zip(weights.iter().copied())
                .collect(),
        })
    }

    /// Returns the number of each file's pieces, and its weight.
    fn counts(
        &self,
        pieces: &Pieces,
        examples: ExampleSlice<'_>,
    ) -> impl Iterator<Item = (usize, f64)> {
        let mut first = 0;
        self.files.iter().map(move |(end, weight)| {
            let before = std::mem::replace(&mut first, pieces.before_row(*end, examples));
            (first - before, *weight)
        })
    }

    /// Returns how many pieces come in `epochs`; `None` if it is the same number in each epoch.
    pub fn total(&self, pieces: &Pieces, examples: ExampleSlice<'_>, epochs: f64) -> Option<f64> {
        let (mut total, mut varies) = (0.0, false);
        for (count, weight) in self.counts(pieces, examples) {
            let fraction = weight.fract();
            varies |= (count as f64 * fraction).fract() != 0.0;
            let [whole, next] =
                [epochs.floor(), epochs.floor() + 1.0].map(|epochs| drawn(count, fraction, epochs));
            total +=
                epochs * count as f64 * weight.floor() + whole + (next - whole) * epochs.fract();
        }
        varies.then_some(total)
    }

    /// Returns the first epoch in which a piece comes, if one comes in `epochs`.
    pub fn first_epoch(
        &self,
        pieces: &Pieces,
        examples: ExampleSlice<'_>,
        epochs: f64,
    ) -> Option<u64> {
        let counts: Vec<(usize, f64)> = self
            .counts(pieces, examples)
            .filter(|(count, _)| *count > 0)
            .collect();
        let comes = |by: f64| {
            counts.iter().any(|(count, weight)| {
                weight.floor() >= 1.0 || drawn(*count, weight.fract(), by) >= 1.0
            })
        };
        (0..epochs.ceil() as u64).find(|epoch| comes(*epoch as f64 + 1.0))
    }

    /// Returns the files of which nothing comes in `epochs`, with the number of their pieces and their weight.
    pub fn absent(
        &self,
        pieces: &Pieces,
        examples: ExampleSlice<'_>,
        epochs: f64,
    ) -> Vec<(usize, usize, f64)> {
        let counts = self.counts(pieces, examples).enumerate();
        let absent = counts.filter(|(_, (count, weight))| {
            *count as f64 * weight.floor() + drawn(*count, weight.fract(), epochs) == 0.0
        });
        absent
            .map(|(file, (count, weight))| (file, count, weight))
            .collect()
    }

    /// Returns the indices of an epoch's pieces, in the order of the data: those of a file as many whole times as its weight states, and
    /// for the fraction that remains a share of them, drawn by seed and epoch, so that after e epochs n pieces have come round(e·n·weight)
    /// times.
    pub fn items(
        &self,
        pieces: &Pieces,
        examples: ExampleSlice<'_>,
        seed: u64,
        epoch: u64,
    ) -> Vec<u32> {
        if self.files.is_empty() {
            return (0..pieces.len() as u32).collect();
        }
        let (mut items, mut first) = (Vec::new(), 0);
        for (file, (end, weight)) in self.files.iter().enumerate() {
            let last = pieces.before_row(*end, examples);
            let mut own: Vec<u32> = (first as u32..last as u32).collect();
            first = last;
            for _ in 0..*weight as usize {
                items.extend(&own);
            }
            shuffle(&mut own, seed, epoch, &format!("mixture:{file}"));
            let [before, after] =
                [0.0, 1.0].map(|more| drawn(own.len(), weight.fract(), epoch as f64 + more));
            items.extend(own.iter().take((after - before) as usize));
        }
        items.sort_unstable();
        items
    }
}
