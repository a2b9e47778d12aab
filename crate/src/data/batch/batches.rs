//! Batches `[B, T]`, and how sequences of tokens fill them.

use std::borrow::Cow;
use std::iter::repeat_n;

use super::side::Side;
use super::store::LEARNED;
use crate::error::Result;

/// Target that does not count in the loss.
pub const IGNORE_INDEX: i32 = -100;

/// A batch of `batch_size` sequences of `seq_len` tokens, stored row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Token ids `[B, T]`.
    pub inputs: Vec<i32>,
    /// The id that follows each input, or [`IGNORE_INDEX`], `[B, T]`.
    pub targets: Vec<i32>,
    /// Number of sequences, B.
    pub batch_size: usize,
    /// Number of tokens in a sequence, T.
    pub seq_len: usize,
    /// Position in its sequence at which each input's document starts, `[B, T]`; `None` if each sequence is one document.
    pub document_starts: Option<Vec<i32>>,
}

impl Batch {
    pub(super) fn new(batch_size: usize, seq_len: usize) -> Self {
        let capacity = batch_size.saturating_mul(seq_len);
        Self {
            inputs: Vec::with_capacity(capacity),
            targets: Vec::with_capacity(capacity),
            batch_size: 0,
            seq_len,
            document_starts: None,
        }
    }

    /// Returns the number of targets that count.
    pub fn counted(&self) -> usize {
        let counted = self
            .targets
            .iter()
            .filter(|target| **target != IGNORE_INDEX);
        counted.count()
    }

    /// Lets each input see only its own document. A document ends with one of the ids `ends`, as in Megatron-LM's `reset_attention_mask`.
    pub fn mask_documents(&mut self, ends: &[u32]) {
        let starts_of = |row: &[i32]| -> Vec<i32> {
            let next = |start: &mut usize, (at, &id): (usize, &i32)| {
                let own = *start;
                if u32::try_from(id).is_ok_and(|id| ends.contains(&id)) {
                    *start = at + 1;
                }
                Some(own as i32)
            };
            row.iter().enumerate().scan(0, next).collect()
        };
        let rows = self.inputs.chunks(self.seq_len.max(1));
        self.document_starts = Some(rows.flat_map(starts_of).collect());
    }

    /// Appends a row: inputs are `ids` without the last, targets `ids` without the first. Targets that are [`LEARNED`] count if `marked`,
    /// otherwise all. The row is cut, or padded with `pad`, to the batch's length.
    pub(super) fn push(&mut self, ids: &[u32], marked: bool, pad: u32) {
        let pairs = self.push_pairs(ids, marked, self.seq_len);
        self.pad(self.seq_len - pairs, pad);
        self.batch_size += 1;
    }

    /// Appends at most `most` pairs of `ids`, and returns their number.
    fn push_pairs(&mut self, ids: &[u32], marked: bool, most: usize) -> usize {
        let pairs = ids.len().saturating_sub(1).min(most);
        let plain = |id: &u32| (id & !LEARNED) as i32;
        let target = |id: &u32| match !marked || id & LEARNED != 0 {
            true => plain(id),
            false => IGNORE_INDEX,
        };
        self.inputs.extend(ids.iter().take(pairs).map(plain));
        self.targets
            .extend(ids.iter().skip(1).take(pairs).map(target));
        pairs
    }

    /// Fills the rest of a row with `pad` and targets that do not count.
    fn pad(&mut self, positions: usize, pad: u32) {
        self.inputs.extend(repeat_n(pad as i32, positions));
        self.targets.extend(repeat_n(IGNORE_INDEX, positions));
    }

    /// Appends a row of several documents, each of which sees only itself. The rest of the row is padded with `pad`.
    pub(super) fn push_packed(&mut self, documents: &[Cow<'_, [u32]>], pad: u32) {
        let mut at = 0;
        for ids in documents {
            let pairs = self.push_pairs(ids, true, self.seq_len - at);
            self.begin_at(at, pairs);
            at += pairs;
        }
        let filling = self.seq_len - at;
        self.pad(filling, pad);
        self.begin_at(at, filling);
        self.batch_size += 1;
    }

    /// Lets the document of the next `positions` begin at the position `start` of its sequence.
    fn begin_at(&mut self, start: usize, positions: usize) {
        let starts = self.document_starts.get_or_insert_default();
        starts.extend(repeat_n(start as i32, positions));
    }
}

/// Iterator over batches in the order of the data; the last one may have fewer rows.
#[derive(Debug, Clone)]
pub struct Batches<'a> {
    side: Side<'a>,
    batch_size: usize,
    seq_len: usize,
    /// Number of tokens from the start of one window to the start of the next.
    stride: usize,
    next: usize,
    pad: u32,
    document_ends: Option<&'a [u32]>,
}

impl<'a> Batches<'a> {
    /// Iterates over the batches of a part: windows of `seq_len` inputs, `stride` tokens apart. Documents that end with one of `document_ends` are
    /// masked from each other.
    pub(super) fn new(
        side: Side<'a>,
        [batch_size, seq_len, stride]: [usize; 3],
        pad: u32,
        document_ends: Option<&'a [u32]>,
    ) -> Self {
        // No row is longer than the longest text or example, and there are no more rows than windows or examples.
        let (rows, longest) = match side {
            Side::Text { .. } => (side.tokens().div_ceil(stride.max(1)), side.tokens()),
            Side::Examples { examples, .. } => {
                let longest = examples.lengths().max().unwrap_or(0);
                (examples.len(), longest as usize)
            }
        };
        Self {
            side,
            batch_size: batch_size.min(rows).max(1),
            seq_len: seq_len.min(longest.saturating_sub(1)).max(1),
            stride: stride.max(1),
            next: 0,
            pad,
            document_ends,
        }
    }

    /// Returns the ids of the next window.
    fn row(&mut self) -> Result<Option<Cow<'a, [u32]>>> {
        match self.side {
            Side::Text { tokens, start, end } => {
                let first = start.saturating_add(self.next);
                if first.saturating_add(2) > end {
                    return Ok(None);
                }
                self.next = self.next.saturating_add(self.stride);
                let end = end.min(first.saturating_add(self.seq_len + 1));
                tokens.read(first..end).map(Some)
            }
            Side::Examples { examples, tokens } => loop {
                let Some(example) = examples.get(self.next) else {
                    return Ok(None);
                };
                self.next += 1;
                if example.teaches(0, self.seq_len) {
                    return tokens.read(example.range(0, self.seq_len)).map(Some);
                }
            },
        }
    }

    fn batch(&mut self) -> Result<Batch> {
        let mut batch = Batch::new(self.batch_size, self.seq_len);
        while batch.batch_size < self.batch_size {
            let Some(ids) = self.row()? else { break };
            batch.push(&ids, matches!(self.side, Side::Examples { .. }), self.pad);
        }
        if let Some(ends) = self.document_ends {
            batch.mask_documents(ends);
        }
        Ok(batch)
    }
}

impl Iterator for Batches<'_> {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.batch();
        batch
            .map(|batch| Some(batch).filter(|batch| batch.batch_size > 0))
            .transpose()
    }
}
