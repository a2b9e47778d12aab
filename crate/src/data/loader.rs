//! The order of training batches: a pure function of seed and epoch, or the order of the data.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::batch::Batch;
use super::corpus::Dataset;
use super::pack::{Mixture, Packing, Pieces, Windows, offset_below, shuffle, windows};
use super::part::Part;
use crate::config::{DataOrder, OnLong, TrainConfig};
use crate::error::{Error, Fault, Result};

/// Maximum number of tokens in one batch.
const MAX_TOKENS: usize = 1 << 27;

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
    data_order: DataOrder,
    packing: bool,
    on_long: OnLong,
    state: LoaderState,
    source: Source,
    order: Order,
}

/// Source of the sequences.
#[derive(Debug, Clone)]
enum Source {
    Text { tokens: usize },
    Examples(Pieces, Mixture),
}

/// The sequences of an epoch.
#[derive(Debug, Clone)]
enum Order {
    /// Start of each window of a text.
    Starts(Vec<u32>),
    Windows(Windows),
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
        Self::for_run(dataset, &TrainConfig { batch_size, seq_len, seed, packing: false, ..TrainConfig::default() })
    }

    /// Creates the loader of a run, at the beginning of epoch 0.
    ///
    /// # Errors
    /// `config.invalid` for sizes and weights; `data.too-short` or `data.no-targets` for data without a sequence; `data.tokens` for 2^32
    /// ids or more.
    pub fn for_run(dataset: &Dataset, config: &TrainConfig) -> Result<Self> {
        let TrainConfig { batch_size, seq_len, seed, data_order, packing, on_long, .. } = *config;
        let mut faults = Vec::new();
        for (key, value) in [("batch_size", batch_size), ("seq_len", seq_len)] {
            if value == 0 {
                faults.push(Fault::new(key, "an integer ≥ 1", value));
            }
        }
        if batch_size.saturating_mul(seq_len) > MAX_TOKENS {
            faults.push(Fault::new("batch_size·seq_len", format!("at most {MAX_TOKENS}"), batch_size.saturating_mul(seq_len)));
        }
        if !faults.is_empty() {
            return Err(Error::InvalidConfig(faults));
        }
        let mixture = Mixture::of(&config.data_weights, dataset.account().file_ends(), dataset.has_examples())?;
        let source = Source::of(dataset.train(), seq_len, on_long, mixture)?;
        let state = LoaderState { seed, seq_len, epoch: 0, cursor: 0, digest: dataset.digest() };
        let order = source.order(dataset.train(), packing, data_order, &state);
        if order.len() == 0 {
            let rule = "weights by which at least one row comes in an epoch";
            return Err(Error::InvalidConfig(vec![Fault::new("data_weights", rule, format!("{:?}", config.data_weights))]));
        }
        Ok(Self { batch_size, data_order, packing, on_long, state, source, order })
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
                self.order = self.source.order(dataset.train(), self.packing, self.data_order, &self.state);
                continue;
            }
            let at = self.state.cursor as usize;
            self.state.cursor += 1;
            match (&self.order, dataset.train()) {
                (Order::Starts(starts), Part::Text { tokens, end, .. }) => {
                    let start = starts.get(at).map_or(0, |start| *start as usize);
                    batch.push(&tokens.read(start..end.min(start.saturating_add(seq_len + 1)))?, false, dataset.pad());
                }
                (Order::Windows(windows), part) => {
                    let pieces = self.source.pieces(windows.get(at).unwrap_or_default(), part, seq_len)?;
                    match (self.packing, pieces.first()) {
                        (false, Some(ids)) => batch.push(ids, true, dataset.pad()),
                        _ => batch.push_packed(&pieces, dataset.pad()),
                    }
                }
                // Cannot occur, since the loader was made for these data.
                _ => batch.push(&[], false, dataset.pad()),
            }
        }
        if let Some(ends) = dataset.document_ends() {
            batch.mask_documents(ends);
        }
        Ok(batch)
    }

    /// Returns the number of passes over the data so far, with a fraction.
    pub fn epochs(&self) -> f64 {
        self.state.epoch as f64 + self.state.cursor as f64 / self.items_per_epoch().max(1) as f64
    }

    /// Returns the number of sequences in this epoch.
    pub fn items_per_epoch(&self) -> usize {
        self.order.len()
    }

    /// Returns how the data fill the sequences of this epoch.
    pub fn fit(&self) -> Fit {
        let windows = self.order.len();
        let positions = (windows * self.state.seq_len).max(1) as f64;
        match &self.source {
            Source::Text { .. } => Fit { cut: 0, skipped: 0, untaught: 0, windows, packed_fraction: 1.0 },
            Source::Examples(Pieces { cut, skipped, untaught, .. }, _) => {
                let packed_fraction = self.order.held() as f64 / positions;
                Fit { cut: *cut, skipped: *skipped, untaught: *untaught, windows, packed_fraction }
            }
        }
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
        matches!(self.source, Source::Text { .. }) && self.on_long != OnLong::default()
    }

    /// Returns the first rows that are cut or left out as too long, and the first without a learned token within a sequence.
    pub(super) fn named_rows(&self) -> [&[u32]; 2] {
        match &self.source {
            Source::Text { .. } => [&[], &[]],
            Source::Examples(pieces, _) => [&pieces.long_rows, &pieces.untaught_rows],
        }
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
        let mut same = |key: &str, ours: String, theirs: String| {
            if ours != theirs {
                faults.push(Fault::new(key, format!("{theirs} as in the checkpoint"), ours));
            }
        };
        same("data.digest", self.state.digest.clone(), state.digest.clone());
        same("seq_len", self.state.seq_len.to_string(), state.seq_len.to_string());
        same("seed", self.state.seed.to_string(), state.seed.to_string());
        if !faults.is_empty() {
            return Err(Error::ResumeMismatch(faults));
        }
        let order = self.source.order(dataset.train(), self.packing, self.data_order, &state);
        if state.cursor > order.len() as u64 {
            let reason = format!("expected at most {}, found {}", order.len(), state.cursor);
            return Err(Error::CheckpointCorrupt { what: "loader.cursor".to_owned(), reason });
        }
        self.order = order;
        self.state = state;
        Ok(())
    }
}

impl Source {
    fn of(part: Part<'_>, seq_len: usize, on_long: OnLong, mixture: Mixture) -> Result<Self> {
        match part {
            Part::Text { start, end, .. } if end - start <= seq_len => {
                Err(Error::DataTooShort { need: seq_len.saturating_add(1), have: end - start })
            }
            Part::Text { start, end, .. } if end - start > u32::MAX as usize => {
                Err(Error::DataTokens { reason: format!("expected fewer than 2^32 ids, found {}", end - start) })
            }
            Part::Text { start, end, .. } => Ok(Self::Text { tokens: end - start }),
            Part::Examples { entries, .. } => {
                let pieces = Pieces::of(entries, seq_len, on_long);
                if pieces.len() == 0 {
                    return Err(Error::DataNoTargets { examples: entries.len(), seq_len });
                }
                Ok(Self::Examples(pieces, mixture))
            }
        }
    }

    /// Returns the sequences of the epoch of `state`, in order.
    fn order(&self, part: Part<'_>, packing: bool, data_order: DataOrder, state: &LoaderState) -> Order {
        let LoaderState { seed, seq_len, epoch, .. } = *state;
        let tokens = match self {
            Self::Examples(pieces, mixture) => {
                let how = Packing { seq_len, packing, order: data_order, seed, epoch };
                return Order::Windows(windows(pieces, part.entries(), mixture, how));
            }
            Self::Text { tokens } => tokens,
        };
        // Any offset below T that leaves room for one window. It varies the boundaries of windows, and the tokens outside all windows, from
        // epoch to epoch. In the data's own order nothing is left out: the last window is as long as the rest.
        let shuffled = data_order == DataOrder::Shuffled;
        let room = tokens.saturating_sub(seq_len + 1).min(seq_len - 1);
        let (offset, end) = if shuffled { (offset_below(room as u64 + 1, seed, epoch) as usize, seq_len) } else { (0, 1) };
        let mut starts: Vec<u32> = (offset..tokens.saturating_sub(end)).step_by(seq_len).map(|start| start as u32).collect();
        if shuffled {
            shuffle(&mut starts, seed, epoch, "order");
        }
        Order::Starts(starts)
    }

    /// Returns the marked ids of each piece of a sequence.
    fn pieces<'a>(&self, window: &[u32], part: Part<'a>, seq_len: usize) -> Result<Vec<Cow<'a, [u32]>>> {
        let Self::Examples(all, _) = self else { return Ok(Vec::new()) };
        window.iter().filter_map(|piece| all.get(*piece as usize)).map(|piece| part.ids_of(piece, seq_len)).collect()
    }
}

impl Order {
    /// Returns the number of positions in all sequences that hold tokens of examples.
    fn held(&self) -> u64 {
        match self {
            Self::Starts(_) => 0,
            Self::Windows(windows) => windows.held,
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Starts(starts) => starts.len(),
            Self::Windows(windows) => windows.len(),
        }
    }
}
