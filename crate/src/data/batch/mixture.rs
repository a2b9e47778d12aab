//! The shares of the files in the epochs of a run.

use super::examples::ExampleSlice;
use super::pack::{Pieces, shuffle};
use crate::error::{Error, Fault, Result};

/// Refuses weights that are not those of the files.
///
/// # Errors
/// `config.invalid` for weights of a stream, or another number of them than of files.
pub(super) fn check_weights(weights: &[f64], files: usize, rows: bool) -> Result<()> {
    if weights.is_empty() || rows && weights.len() == files {
        return Ok(());
    }
    Err(wrong_weights(
        match rows {
            true => format!("one for each of {files} files"),
            false => "none where the data are one stream".into(),
        },
        weights,
    ))
}

/// The refusal of weights that break a rule.
pub(super) fn wrong_weights(rule: String, weights: &[f64]) -> Error {
    Error::InvalidConfig(vec![Fault::new(
        "data_weights",
        rule,
        format!("{weights:?}"),
    )])
}

/// The number of times that the rows of each file come in an epoch; empty if all rows come once.
#[derive(Debug, Clone)]
pub(super) struct Mixture(Vec<Share>);

/// The pieces of a file, and its weight.
#[derive(Debug, Clone, Copy)]
struct Share {
    pieces: usize,
    weight: f64,
}

impl Share {
    /// The number of pieces that have come after `epochs` by the part of the weight that is no whole number: round(e·n·f).
    fn drawn(self, epochs: f64) -> f64 {
        (epochs * self.pieces as f64 * self.weight.fract()).round()
    }
}

impl Mixture {
    /// Divides pieces into files, each of which ends before a row, with its weight.
    pub fn of(weights: &[f64], ends: &[u32], pieces: &Pieces, examples: ExampleSlice<'_>) -> Self {
        let mut first = 0;
        let share = |(&end, &weight): (&u32, &f64)| {
            let before = std::mem::replace(&mut first, pieces.before_row(end, examples));
            Share {
                pieces: first - before,
                weight,
            }
        };
        Self(ends.iter().zip(weights).map(share).collect())
    }

    /// The number of pieces that come in `epochs`; `None` if it is the same number in each epoch.
    pub fn total(&self, epochs: f64) -> Option<f64> {
        let (mut total, mut varies) = (0.0, false);
        for share in &self.0 {
            varies |= (share.pieces as f64 * share.weight.fract()).fract() != 0.0;
            let (before, next) = (
                share.drawn(epochs.floor()),
                share.drawn(epochs.floor() + 1.0),
            );
            total += epochs * share.pieces as f64 * share.weight.floor()
                + before
                + (next - before) * epochs.fract();
        }
        varies.then_some(total)
    }

    /// The first epoch in which a piece comes, if one comes in `epochs`.
    pub fn first_epoch(&self, epochs: f64) -> Option<u64> {
        let comes = |share: &Share, by: f64| {
            share.pieces > 0 && (share.weight.floor() >= 1.0 || share.drawn(by) >= 1.0)
        };
        let mut all = 0..epochs.ceil() as u64;
        all.find(|epoch| self.0.iter().any(|share| comes(share, *epoch as f64 + 1.0)))
    }

    /// The files of which nothing comes in `epochs`: index, number of pieces, and weight.
    pub fn absent(&self, epochs: f64) -> Vec<(usize, usize, f64)> {
        let shares = self.0.iter().enumerate();
        let absent = shares.filter(|(_, share)| {
            share.pieces as f64 * share.weight.floor() + share.drawn(epochs) == 0.0
        });
        absent
            .map(|(file, share)| (file, share.pieces, share.weight))
            .collect()
    }

    /// The indices of an epoch's pieces, of which there are `count`, in the order of the data: those of a file as many whole times as its
    /// weight states, and for the fraction that remains a share of them, drawn by seed and epoch, so that after e epochs n pieces have come
    /// round(e·n·weight) times.
    pub fn items(&self, count: usize, seed: u64, epoch: u64) -> Vec<u32> {
        if self.0.is_empty() {
            return (0..count as u32).collect();
        }
        let (mut items, mut first) = (Vec::new(), 0);
        for (file, share) in self.0.iter().enumerate() {
            let last = first + share.pieces as u32;
            let mut own: Vec<u32> = (first..last).collect();
            first = last;
            for _ in 0..share.weight as usize {
                items.extend(&own);
            }
            shuffle(&mut own, seed, epoch, &format!("mixture:{file}"));
            let [before, after] = [0.0, 1.0].map(|more| share.drawn(epoch as f64 + more));
            items.extend(own.iter().take((after - before) as usize));
        }
        items.sort_unstable();
        items
    }
}
