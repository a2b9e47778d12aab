//! Report on a dataset: lengths, sequences, and what is left out of them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use super::dataset::Dataset;
use super::examples::{Cursor, ExampleSlice};
use super::loader::{Fit, Loader};
use super::pack::Pieces;
use super::side::Side;
use super::store::LEARNED;
use crate::config::TrainConfig;
use crate::data::read::{DataWarning, FileReport};

/// Granularity of proposed sequence lengths, their minimum for packed examples, and their maximum.
pub(super) const SEQ_LEN_STEP: usize = 64;
const PACKED_SEQ_LEN: usize = 256;
const MAX_SEQ_LEN: usize = 1024;
/// Number of ids that are read at once.
const READ_AT_ONCE: usize = 256 << 10;
/// Number of bars in a histogram of lengths.
const BARS: usize = 32;

/// Token counts of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokenCounts {
    /// Number of tokens in the training part.
    pub total: usize,
    /// Number of these that are learned.
    pub learned: usize,
}

/// Lengths of the training examples, in tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lengths {
    /// Minimum.
    pub min: usize,
    /// Median.
    pub p50: usize,
    /// 95th percentile: 95 % of the examples are not longer.
    pub p95: usize,
    /// Maximum.
    pub max: usize,
    /// Number of examples by length, from 0 to the maximum in equal steps of `histogram_step` tokens.
    pub histogram: Vec<usize>,
    /// Number of tokens from one bar of the histogram to the next.
    pub histogram_step: usize,
}

/// Report on training data as they are learned.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DataReport {
    /// Report on each file.
    pub files: Vec<FileReport>,
    /// Number of rows of each kind: chat, completion, text, tokens.
    pub shapes: BTreeMap<&'static str, usize>,
    /// Number of chats by the method that found their learned tokens: generation, prefix, per-answer, all.
    pub rules: BTreeMap<&'static str, usize>,
    /// Number of examples that are trained on; 0 for a stream.
    pub examples: usize,
    /// Number of examples, or of tokens of a stream, that are kept for evaluation.
    pub validation: usize,
    /// Token counts of the training part.
    pub tokens: TokenCounts,
    /// Lengths of the training examples; null for a stream.
    pub lengths: Option<Lengths>,
    /// Number of tokens in a sequence, T.
    pub seq_len: usize,
    /// Number of examples whose end is left out.
    pub cut: usize,
    /// Number of examples that are left out: too long by `on_long`, or without a learned token within `seq_len`.
    pub skipped: usize,
    /// Number of sequences in an epoch.
    pub windows: usize,
    /// Share of the positions of these sequences that hold tokens.
    pub packed_fraction: f64,
    /// Number of steps in an epoch; the last one may continue into the next epoch.
    pub steps_per_epoch: u64,
    /// Tokens that end a text or a turn.
    pub end: Vec<String>,
    /// Warnings about the data.
    pub warnings: Vec<DataWarning>,
    /// SHA-256 of the examples, or of the stream.
    pub digest: String,
}

#[doc(hidden)]
impl Dataset {
    /// One report for each file, in the order of the files: its form as it was read, and its number of rows.
    pub fn files(&self) -> &[FileReport] {
        &self.account.files
    }

    /// Returns the T of a run on rows that does not set it: the smallest multiple of 64 that holds 95 % of the examples whole, at most 1024
    /// and the model's context. For packed examples it is at least 256, but no more than all of them fill. `None` for a stream.
    pub fn proposed_seq_len(
        &self,
        batch_size: usize,
        packing: bool,
        context: usize,
    ) -> Option<usize> {
        let lengths = self.train().examples().lengths();
        let mut pairs: Vec<u32> = lengths.map(|length| length.saturating_sub(1)).collect();
        pairs.sort_unstable();
        let whole = percentile(&pairs, 95)?;
        let up = |tokens: usize| tokens.next_multiple_of(SEQ_LEN_STEP);
        let all: usize = pairs.iter().map(|pairs| *pairs as usize).sum();
        let filled = up(all.div_ceil(batch_size.max(1)));
        let least = match packing {
            true => PACKED_SEQ_LEN.min(filled),
            false => SEQ_LEN_STEP,
        };
        Some(up(whole).max(least).min(MAX_SEQ_LEN).min(context).max(1))
    }

    /// Counts the tokens of the pieces, and the learned ones. Among cut examples only those with several answers are read for it, many at
    /// once: each call of a storage costs as much as thousands of ids.
    fn counted(&self, pieces: &Pieces, seq_len: usize) -> TokenCounts {
        let side = self.train();
        let mut examples = Cursor::new(side.examples());
        let mut counts = TokenCounts {
            total: 0,
            learned: 0,
        };
        let (mut read, mut first): (Cow<'_, [u32]>, usize) = (Cow::Borrowed(&[]), 0);
        for piece in (0..pieces.len()).filter_map(|at| pieces.get(at)) {
            let Some(example) = examples.get(piece.example as usize) else {
                continue;
            };
            if example.pairs() <= seq_len {
                counts.total += example.len();
                counts.learned += example.learned();
                continue;
            }
            let range = example.range(piece.start as usize, seq_len);
            counts.total += range.len();
            if let Some(learned) = example.learned_within(piece.start as usize, seq_len) {
                counts.learned += learned;
                continue;
            }
            if range.start < first || range.end > first + read.len() {
                first = range.start;
                let end = first.saturating_add(range.len().max(READ_AT_ONCE));
                read = side.store().read(first..end).unwrap_or_default();
            }
            let ids = read
                .get(range.start - first..range.end - first)
                .unwrap_or_default();
            counts.learned += ids.iter().skip(1).filter(|id| **id & LEARNED != 0).count();
        }
        counts
    }

    /// Reports on these data in a run with these settings, whose order `loader` knows.
    pub fn report(&self, config: &TrainConfig, loader: &Loader) -> DataReport {
        let Fit {
            cut,
            skipped,
            untaught,
            windows,
            packed_fraction,
        } = loader.fit();
        let examples = self.train().examples();
        let tokens = match loader.pieces() {
            None => TokenCounts {
                total: self.train_tokens(),
                learned: self.train_tokens().saturating_sub(1),
            },
            Some(pieces) => self.counted(pieces, config.seq_len),
        };
        let validation = match self.validation() {
            side @ Side::Text { .. } => side.tokens(),
            Side::Examples { examples, .. } => examples.len(),
        };
        let a_step = (config.batch_size * config.gradient_accumulation_steps).max(1);
        DataReport {
            files: self.files().to_vec(),
            shapes: self.account.shapes.clone(),
            rules: self.account.rules.clone(),
            examples: examples.len() - skipped - untaught,
            validation,
            tokens,
            lengths: lengths(examples),
            seq_len: config.seq_len,
            cut,
            skipped: skipped + untaught,
            windows,
            packed_fraction,
            steps_per_epoch: windows.div_ceil(a_step) as u64,
            end: self.account.end_texts.clone(),
            warnings: self.warnings(loader),
            digest: self.digest(),
        }
    }
}

/// The shortest of the sorted lengths that at least so many percent of them do not exceed.
fn percentile(sorted: &[u32], percent: usize) -> Option<usize> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).map(|length| *length as usize)
}

fn lengths(examples: ExampleSlice<'_>) -> Option<Lengths> {
    let mut lengths: Vec<u32> = examples.lengths().collect();
    lengths.sort_unstable();
    let max = *lengths.last()? as usize;
    let histogram_step = max.div_ceil(BARS).max(1);
    let mut histogram = vec![0; max / histogram_step + 1];
    for length in &lengths {
        histogram[*length as usize / histogram_step] += 1;
    }
    Some(Lengths {
        min: *lengths.first()? as usize,
        p50: percentile(&lengths, 50)?,
        p95: percentile(&lengths, 95)?,
        max,
        histogram,
        histogram_step,
    })
}
