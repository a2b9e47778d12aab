//! The order of training batches: a pure function of seed and epoch, or the order of the data.

use serde::{Deserialize, Serialize};

use super::batch::Batch;
use super::corpus::{Dataset, Part};
use crate::config::DataOrder;
use crate::error::{Error, Fault, Result};
use crate::random;

/// Purpose of the noise that orders the data (shaders/README.md, "Noise").
const PURPOSE: &str = "data:";

/// Maximum number of tokens in one batch.
const MAX_TOKENS: usize = 1 << 27;

/// The position of a loader; with the same data and settings it continues exactly from there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoaderState {
    /// Seed of the order.
    pub seed: u64,
    /// T.
    pub seq_len: usize,
    /// Number of complete passes over the data.
    pub epoch: u64,
    /// Number of windows or examples handed out in this pass.
    pub cursor: u64,
    /// [`Dataset::digest`] of the data.
    pub digest: String,
}

/// Hands out training batches. A text is cut into windows that do not overlap, from an offset that changes with each epoch; in the data's own
/// order they start at its first token in every epoch, and the last one has what is left.
#[derive(Debug, Clone)]
pub struct Loader {
    batch_size: usize,
    data_order: DataOrder,
    state: LoaderState,
    /// Tokens of the text, or the indices of the examples that have a target within T tokens.
    source: Source,
    /// Window starts or example indices of this epoch.
    order: Vec<u32>,
}

#[derive(Debug, Clone)]
enum Source {
    Text { tokens: usize },
    Examples { usable: Vec<u32> },
}

impl Loader {
    /// A loader at the beginning of epoch 0, in shuffled order.
    pub fn new(dataset: &Dataset, batch_size: usize, seq_len: usize, seed: u64) -> Result<Self> {
        Self::ordered(dataset, batch_size, seq_len, seed, DataOrder::Shuffled)
    }

    /// A loader at the beginning of epoch 0.
    pub fn ordered(dataset: &Dataset, batch_size: usize, seq_len: usize, seed: u64, data_order: DataOrder) -> Result<Self> {
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
        let source = match dataset.train() {
            Part::Text(tokens) => {
                if tokens.len() <= seq_len {
                    return Err(Error::DataTooShort { need: seq_len.saturating_add(1), have: tokens.len() });
                }
                Source::Text { tokens: tokens.len() }
            }
            Part::Examples(examples) => {
                let usable: Vec<u32> =
                    examples.iter().enumerate().filter(|(_, example)| example.teaches(seq_len)).map(|(index, _)| index as u32).collect();
                if usable.is_empty() {
                    return Err(Error::DataNoTargets { examples: examples.len(), seq_len });
                }
                Source::Examples { usable }
            }
        };
        let state = LoaderState { seed, seq_len, epoch: 0, cursor: 0, digest: dataset.digest() };
        let order = source.order(data_order, seed, 0, seq_len);
        Ok(Self { batch_size, data_order, state, source, order })
    }

    /// The next batch; a batch may reach into the next epoch.
    pub fn next(&mut self, dataset: &Dataset) -> Batch {
        let seq_len = self.state.seq_len;
        let mut batch = Batch::new(self.batch_size, seq_len);
        while batch.batch_size < self.batch_size {
            let Some(&item) = self.order.get(self.state.cursor as usize) else {
                self.state.epoch += 1;
                self.state.cursor = 0;
                self.order = self.source.order(self.data_order, self.state.seed, self.state.epoch, seq_len);
                continue;
            };
            self.state.cursor += 1;
            let item = item as usize;
            match dataset.train() {
                Part::Text(tokens) => {
                    let end = tokens.len().min(item.saturating_add(seq_len + 1));
                    batch.push(tokens.get(item..end).unwrap_or_default(), None, dataset.pad());
                }
                Part::Examples(examples) => match examples.get(item) {
                    Some(example) => batch.push(&example.ids, Some(&example.counted), dataset.pad()),
                    None => batch.push(&[], None, dataset.pad()),
                },
            }
        }
        if let Some(ends) = dataset.document_ends() {
            batch.mask_documents(ends);
        }
        batch
    }

    /// Windows or examples of one epoch.
    pub fn items_per_epoch(&self) -> usize {
        self.order.len()
    }

    /// The position of the loader.
    pub fn state(&self) -> LoaderState {
        self.state.clone()
    }

    /// Restores `state`. Other data, another seed or another sequence length would give another order: all differences are refused.
    pub fn restore(&mut self, state: LoaderState) -> Result<()> {
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
        let order = self.source.order(self.data_order, state.seed, state.epoch, state.seq_len);
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
    /// The items of `epoch`, in order.
    fn order(&self, data_order: DataOrder, seed: u64, epoch: u64, seq_len: usize) -> Vec<u32> {
        let shuffled = data_order == DataOrder::Shuffled;
        let mut items = match self {
            Self::Examples { usable } => usable.clone(),
            Self::Text { tokens } => {
                // Any offset below T that leaves room for one window; it moves the cuts between windows from epoch to epoch, and with them what
                // no window has. In the data's own order nothing is left out: the last window is as long as the rest.
                let room = tokens.saturating_sub(seq_len + 1).min(seq_len - 1);
                let (offset, end) = match shuffled {
                    true => (random::below(random::key(PURPOSE, seed, "offset"), 0, epoch, room as u64 + 1) as usize, seq_len),
                    false => (0, 1),
                };
                (offset..tokens.saturating_sub(end)).step_by(seq_len).map(|start| start as u32).collect()
            }
        };
        if !shuffled {
            return items;
        }
        let key = random::key(PURPOSE, seed, "order");
        for index in (1..items.len()).rev() {
            items.swap(index, random::below(key, index as u64, epoch, index as u64 + 1) as usize);
        }
        items
    }
}
