//! The order of training batches: a pure function of seed and epoch, or the order of the data.

use std::fmt::Display;

use serde::{Deserialize, Serialize};

use super::batches::Batch;
use super::dataset::Dataset;
use super::mixture::{check_weights, wrong_weights};
use super::order::{Order, Source};
use super::pack::{Packing, Pieces};
use super::side::Side;
use crate::config::{OnLong, TrainConfig};
use crate::error::{Error, Fault, Result};

/// Maximum number of tokens in one batch.
const MAX_TOKENS: usize = 1 << 27;

/// Number of epochs over which their mean length is taken.
const LONG: f64 = 1e6;

/// The position of a loader, which continues exactly from there with the same data and settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoaderState {
    /// Seed of the order.
    pub seed: u64,
    /// Number of tokens in a sequence, T.
    pub seq_len: usize,
    /// Number of complete passes over the data.
    pub epoch: u64,
    /// Number of sequences delivered in this pass.
    pub cursor: u64,
    /// [`Dataset::digest`] of the data.
    pub digest: String,
}

/// Delivers training batches. A text is divided into windows that do not overlap, from an offset that changes with each epoch; in the
/// data's own order they start at its first token in every epoch, and the last one has the rest. A sequence holds one example or several.
#[derive(Debug, Clone)]
pub struct Loader {
    batch_size: usize,
    /// How the first epoch fills its sequences.
    how: Packing,
    on_long: OnLong,
    /// Number of sequences in the run.
    sequences: f64,
    /// Number of sequences in the first epoch that has any, and of the pieces in them.
    first: [usize; 2],
    state: LoaderState,
    source: Source,
    order: Order,
}

/// How examples fill sequences.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// Number of examples whose end is left out.
    pub cut: usize,
    /// Number of examples that are left out as too long, by `on_long`.
    pub skipped: usize,
    /// Number of examples that are left out because none of their tokens within a sequence is learned.
    pub untaught: usize,
    /// Number of sequences in this epoch.
    pub windows: usize,
    /// Share of their positions that hold tokens.
    pub packed_fraction: f64,
}

impl Loader {
    /// Creates a loader at the beginning of epoch 0, in shuffled order, with one example in each sequence.
    ///
    /// # Errors
    /// As for [`Loader::for_run`].
    pub fn new(dataset: &Dataset, batch_size: usize, seq_len: usize, seed: u64) -> Result<Self> {
        Self::for_run(
            dataset,
            &TrainConfig {
                batch_size,
                seq_len,
                seed,
                packing: false,
                ..TrainConfig::default()
            },
        )
    }

    /// Creates the loader of a run, at the beginning of epoch 0.
    ///
    /// # Errors
    /// `config.invalid` for sizes and weights; `data.too-short` or `data.no-targets` for data without a sequence; `data.tokens` for 2^32
    /// ids or more.
    pub fn for_run(dataset: &Dataset, config: &TrainConfig) -> Result<Self> {
        let TrainConfig {
            batch_size,
            seq_len,
            seed,
            data_order,
            packing,
            on_long,
            ..
        } = *config;
        let mut faults = Vec::new();
        for (key, value) in [("batch_size", batch_size), ("seq_len", seq_len)] {
            if value == 0 {
                faults.push(Fault::new(key, "an integer ≥ 1", value));
            }
        }
        let tokens = batch_size.saturating_mul(seq_len);
        if tokens > MAX_TOKENS {
            let rule = format!("at most {MAX_TOKENS}");
            faults.push(Fault::new("batch_size·seq_len", rule, tokens));
        }
        if !faults.is_empty() {
            return Err(Error::InvalidConfig(faults));
        }
        let file_ends = &dataset.account.file_ends;
        let weights = &config.data_weights;
        check_weights(weights, file_ends.len(), dataset.has_examples())?;
        let source = Source::of(dataset.train(), config, file_ends)?;
        let state = LoaderState {
            seed,
            seq_len,
            epoch: 0,
            cursor: 0,
            digest: dataset.digest(),
        };
        let how = Packing {
            seq_len,
            packing,
            order: data_order,
            seed,
            epoch: 0,
        };
        let order_of = |epoch| source.order(dataset.train(), Packing { epoch, ..how });
        let order = order_of(0);
        // Weights may leave the first epochs empty, if the number of epochs says that rows come in later ones.
        let later = match (&source, config.epochs) {
            (Source::Examples(_, mixture), Some(epochs)) if order.len() == 0 => {
                mixture.first_epoch(epochs).map(order_of)
            }
            _ => None,
        };
        let filled = later.as_ref().unwrap_or(&order);
        if filled.len() == 0 {
            let within = match config.epochs {
                Some(_) => "the epochs of the run",
                None => "an epoch",
            };
            let rule = format!("weights by which at least one row comes in {within}");
            return Err(wrong_weights(rule, weights));
        }
        let first = match filled {
            Order::Windows(windows) => [windows.len(), windows.items()],
            Order::Starts(starts) => [starts.len(); 2],
        };
        let sequences =
            config.steps as f64 * (batch_size * config.gradient_accumulation_steps) as f64;
        Ok(Self {
            batch_size,
            how,
            on_long,
            sequences,
            first,
            state,
            source,
            order,
        })
    }

    fn order(&self, dataset: &Dataset, epoch: u64) -> Order {
        let how = Packing { epoch, ..self.how };
        self.source.order(dataset.train(), how)
    }

    /// Returns the next batch `[B, T]`, which may continue into the next epoch.
    ///
    /// # Errors
    /// Errors of the token storage.
    pub fn next(&mut self, dataset: &Dataset) -> Result<Batch> {
        let seq_len = self.state.seq_len;
        let mut batch = Batch::new(self.batch_size, seq_len);
        while batch.batch_size < self.batch_size {
            if self.state.cursor as usize >= self.order.len() {
                self.state.epoch += 1;
                self.state.cursor = 0;
                // The order of many rows is large: the old one is dropped before the new one is made.
                self.order = Order::Starts(Vec::new());
                self.order = self.order(dataset, self.state.epoch);
                continue;
            }
            let at = self.state.cursor as usize;
            self.state.cursor += 1;
            match (&self.order, dataset.train()) {
                (Order::Starts(starts), Side::Text { tokens, end, .. }) => {
                    let start = starts.get(at).map_or(0, |start| *start as usize);
                    let end = end.min(start.saturating_add(seq_len + 1));
                    batch.push(&tokens.read(start..end)?, false, dataset.pad);
                }
                (Order::Windows(windows), side) => {
                    let window = windows.get(at).unwrap_or_default();
                    let pieces = self.source.pieces(window, side, seq_len)?;
                    match (self.how.packing, pieces.first()) {
                        (false, Some(ids)) => batch.push(ids, true, dataset.pad),
                        _ => batch.push_packed(&pieces, dataset.pad),
                    }
                }
                // Cannot occur, since the loader was made for these data.
                _ => batch.push(&[], false, dataset.pad),
            }
        }
        if let Some(ends) = dataset.document_ends() {
            batch.mask_documents(ends);
        }
        Ok(batch)
    }

    /// Returns the number of passes over the data that the run makes.
    pub(crate) fn passes(&self) -> f64 {
        self.sequences / self.first[0].max(1) as f64
    }

    /// Returns the number of passes over the data so far, with a fraction.
    pub fn epochs(&self) -> f64 {
        self.state.epoch as f64 + self.state.cursor as f64 / self.items_per_epoch().max(1) as f64
    }

    /// Returns the number of sequences in this epoch.
    pub fn items_per_epoch(&self) -> usize {
        self.order.len()
    }

    /// Returns the number of sequences in `epochs`, of which each is as long as the first, but for shares that come in some of them alone.
    pub(super) fn sequences_in(&self, epochs: f64) -> f64 {
        let total = match &self.source {
            Source::Examples(_, mixture) => mixture.total(epochs),
            Source::Text { .. } => None,
        };
        let [first, pieces] = self.first.map(|count| count as f64);
        let even = || self.items_per_epoch() as f64 * epochs;
        total.map_or_else(even, |total| total * first / pieces)
    }

    /// The files of which the run reads nothing by their weights: index, number of pieces, and weight.
    pub(super) fn absent(&self) -> Vec<(usize, usize, f64)> {
        let Source::Examples(_, mixture) = &self.source else {
            return Vec::new();
        };
        // Rounding must not make 50 epochs 51.
        let epochs = self.sequences / (self.sequences_in(LONG) / LONG) - 1e-9;
        mixture.absent(epochs.ceil().max(1.0))
    }

    /// Returns how the data fill the sequences of this epoch.
    pub fn fit(&self) -> Fit {
        let windows = self.order.len();
        let positions = (windows * self.state.seq_len).max(1) as f64;
        let stream = Fit {
            cut: 0,
            skipped: 0,
            untaught: 0,
            windows,
            packed_fraction: 1.0,
        };
        self.pieces().map_or(stream, |pieces| Fit {
            cut: pieces.cut,
            skipped: pieces.skipped,
            untaught: pieces.untaught,
            packed_fraction: self.order.held() as f64 / positions,
            ..stream
        })
    }

    /// Returns the pieces of examples; `None` for a stream.
    pub(super) fn pieces(&self) -> Option<&Pieces> {
        match &self.source {
            Source::Text { .. } => None,
            Source::Examples(pieces, _) => Some(pieces),
        }
    }

    /// Returns true if the treatment of long examples is set for a stream, which has none.
    pub(super) fn idle_on_long(&self) -> bool {
        self.pieces().is_none() && self.on_long != OnLong::default()
    }

    /// Returns the position of the loader.
    pub fn state(&self) -> LoaderState {
        self.state.clone()
    }

    /// Restores `state`. Other data, another seed or another sequence length would give another order.
    ///
    /// # Errors
    /// `optim.resume-mismatch`, listing all differences; `checkpoint.corrupt` for a cursor beyond the epoch.
    pub fn restore(&mut self, dataset: &Dataset, state: LoaderState) -> Result<()> {
        let mut faults = Vec::new();
        let mut same = |key: &str, ours: &dyn Display, theirs: &dyn Display| {
            let (ours, theirs) = (ours.to_string(), theirs.to_string());
            if ours != theirs {
                faults.push(Fault::new(key, theirs, ours));
            }
        };
        let ours = &self.state;
        same("data.digest", &ours.digest, &state.digest);
        same("seq_len", &ours.seq_len, &state.seq_len);
        same("seed", &ours.seed, &state.seed);
        if !faults.is_empty() {
            return Err(Error::ResumeMismatch(faults));
        }
        let order = self.order(dataset, state.epoch);
        if state.cursor > order.len() as u64 {
            let reason = format!("expected at most {}, found {}", order.len(), state.cursor);
            return Err(Error::CheckpointCorrupt {
                what: "loader.cursor".to_owned(),
                reason,
            });
        }
        self.order = order;
        self.state = state;
        Ok(())
    }
}
