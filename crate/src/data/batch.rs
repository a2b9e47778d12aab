//! Batches [B, T], and how runs of tokens fill them.

use super::corpus::{Dataset, Part};

/// A target that does not count.
pub const IGNORE_INDEX: i32 = -100;

/// `batch_size` sequences of `seq_len` tokens, row after row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Token ids [B, T].
    pub inputs: Vec<i32>,
    /// The id that follows each input [B, T], or [`IGNORE_INDEX`].
    pub targets: Vec<i32>,
    /// B.
    pub batch_size: usize,
    /// T.
    pub seq_len: usize,
    /// The position in its sequence at which each input's document starts [B, T]; `None` if a sequence is one document.
    pub document_starts: Option<Vec<i32>>,
}

impl Batch {
    pub(super) fn new(batch_size: usize, seq_len: usize) -> Self {
        let capacity = batch_size.saturating_mul(seq_len);
        Self { inputs: Vec::with_capacity(capacity), targets: Vec::with_capacity(capacity), batch_size: 0, seq_len, document_starts: None }
    }

    /// Targets that count.
    pub fn counted(&self) -> usize {
        self.targets.iter().filter(|&&target| target != IGNORE_INDEX).count()
    }

    /// Lets each input see only its own document. A document ends with one of the ids `ends`, as Megatron-LM's `reset_attention_mask` has
    /// it.
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
        self.document_starts = Some(self.inputs.chunks(self.seq_len.max(1)).flat_map(starts_of).collect());
    }

    /// Appends a row: inputs are `ids` without the last, targets `ids` without the first. `counted` tells which ids are to be learned
    /// (`None`: all). The row is cut or padded with `pad` to the batch's length.
    pub(super) fn push(&mut self, ids: &[u32], counted: Option<&[bool]>, pad: u32) {
        let pairs = ids.len().saturating_sub(1).min(self.seq_len);
        let filling = self.seq_len - pairs;
        self.inputs.extend(ids.iter().take(pairs).map(|&id| id as i32));
        self.inputs.extend(std::iter::repeat_n(pad as i32, filling));
        let counts = |index: usize| counted.is_none_or(|counted| counted.get(index).copied().unwrap_or(false));
        self.targets
            .extend(ids.iter().enumerate().skip(1).take(pairs).map(|(index, &id)| if counts(index) { id as i32 } else { IGNORE_INDEX }));
        self.targets.extend(std::iter::repeat_n(IGNORE_INDEX, filling));
        self.batch_size += 1;
    }
}

impl Batch {
    /// Appends a row of several documents, each of which sees only itself. What they leave of it is padded with `pad`.
    pub(super) fn push_packed<'a>(&mut self, documents: impl Iterator<Item = (&'a [u32], &'a [bool])>, pad: u32) {
        let starts = self.document_starts.get_or_insert_default();
        let mut at = 0;
        for (ids, counted) in documents {
            let pairs = ids.len().saturating_sub(1).min(self.seq_len - at);
            self.inputs.extend(ids.iter().take(pairs).map(|&id| id as i32));
            let targets = ids.iter().zip(counted).skip(1).take(pairs);
            self.targets.extend(targets.map(|(&id, &counts)| if counts { id as i32 } else { IGNORE_INDEX }));
            starts.extend(std::iter::repeat_n(at as i32, pairs));
            at += pairs;
        }
        let filling = self.seq_len - at;
        self.inputs.extend(std::iter::repeat_n(pad as i32, filling));
        self.targets.extend(std::iter::repeat_n(IGNORE_INDEX, filling));
        starts.extend(std::iter::repeat_n(at as i32, filling));
        self.batch_size += 1;
    }
}

/// Batches in the order of the data; the last one may have fewer rows.
#[derive(Debug, Clone)]
pub struct Batches<'a> {
    part: Part<'a>,
    batch_size: usize,
    seq_len: usize,
    /// Tokens from the start of one window to the start of the next.
    stride: usize,
    next: usize,
    pad: u32,
    document_ends: Option<&'a [u32]>,
}

impl<'a> Batches<'a> {
    pub(super) fn new(dataset: &'a Dataset, part: Part<'a>, batch_size: usize, seq_len: usize, stride: usize) -> Self {
        // No row is longer than the longest run of data, and there are no more rows than runs.
        let (rows, longest) = match part {
            Part::Text(tokens) => (tokens.len().div_ceil(stride.max(1)), tokens.len()),
            Part::Examples(examples) => (examples.len(), examples.iter().map(|example| example.ids.len()).max().unwrap_or(0)),
        };
        let seq_len = seq_len.min(longest.saturating_sub(1)).max(1);
        let (pad, document_ends) = (dataset.pad(), dataset.document_ends());
        Self { part, batch_size: batch_size.min(rows).max(1), seq_len, stride: stride.max(1), next: 0, pad, document_ends }
    }

    /// The next window's ids and which of them count.
    fn row(&mut self) -> Option<(&'a [u32], Option<&'a [bool]>)> {
        match self.part {
            Part::Text(tokens) => {
                let rest = tokens.get(self.next..)?;
                if rest.len() < 2 {
                    return None;
                }
                self.next = self.next.saturating_add(self.stride);
                Some((rest.get(..=self.seq_len).unwrap_or(rest), None))
            }
            Part::Examples(examples) => loop {
                let example = examples.get(self.next)?;
                self.next += 1;
                if example.teaches(0, self.seq_len) {
                    return Some((&example.ids, Some(&example.counted)));
                }
            },
        }
    }
}

impl Iterator for Batches<'_> {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        let mut batch = Batch::new(self.batch_size, self.seq_len);
        while batch.batch_size < self.batch_size {
            let Some((ids, counted)) = self.row() else { break };
            batch.push(ids, counted, self.pad);
        }
        if let Some(ends) = self.document_ends {
            batch.mask_documents(ends);
        }
        (batch.batch_size > 0).then_some(batch)
    }
}
