//! The examples of a dataset: the place of their tokens, and how many of these are learned.

use std::ops::Range;

/// Number of entries in a block: 1.3 MB.
const BLOCK: usize = 1 << 16;

/// An example in the store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub start: u32,
    pub length: u32,
    /// Index of its row among the rows of all files; [`DOCUMENT`] is set for a document.
    pub row: u32,
    /// Index of the first target that is learned.
    pub first: u32,
    /// Number of targets that are learned.
    pub learned: u32,
}

/// Bit that marks the row of a document.
pub(super) const DOCUMENT: u32 = 1 << 31;

impl Entry {
    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.length as usize
    }

    /// Returns the number of pairs of input and target.
    pub fn pairs(&self) -> usize {
        self.len().saturating_sub(1)
    }

    /// Returns true if one of the `seq_len` targets from `start` on is learned. In a document all targets are.
    pub fn teaches(&self, start: usize, seq_len: usize) -> bool {
        let learned = self.learned > 0 && start < self.pairs() && seq_len > 0;
        learned && (self.document() || (self.first as usize) <= start.saturating_add(seq_len))
    }

    /// Counts the learned targets among the `seq_len` from `start` on, if all are learned from the first learned one on; otherwise `None`.
    pub fn learned_within(&self, start: usize, seq_len: usize) -> Option<usize> {
        let (first, len) = (self.first as usize, self.len());
        let end = len.min(start.saturating_add(seq_len).saturating_add(1));
        (first + self.learned() == len).then(|| end.saturating_sub(first.max(start + 1)))
    }

    /// Returns the number of targets that are learned.
    pub fn learned(&self) -> usize {
        self.learned as usize
    }

    pub fn row(&self) -> u32 {
        self.row & !DOCUMENT
    }

    /// Returns true for a document, which may be divided into several sequences.
    pub fn document(&self) -> bool {
        self.row & DOCUMENT != 0
    }

    /// Returns the place in the store of `pairs` + 1 tokens from `start` on.
    pub fn range(&self, start: usize, pairs: usize) -> Range<usize> {
        let first = self.start as usize + start;
        first..first + pairs.saturating_add(1).min(self.len().saturating_sub(start))
    }
}

/// The entries of all examples, in blocks: a growing list would be copied, and a tab's memory never shrinks again.
#[derive(Debug, Clone, Default)]
pub(super) struct Entries {
    blocks: Vec<Vec<Entry>>,
}

impl Entries {
    pub fn len(&self) -> usize {
        let full = self.blocks.len().saturating_sub(1) * BLOCK;
        full + self.blocks.last().map_or(0, Vec::len)
    }

    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub fn push(&mut self, entry: Entry) {
        match self.blocks.last_mut().filter(|block| block.len() < BLOCK) {
            Some(block) => block.push(entry),
            None => {
                // A small dataset gets a small block.
                let mut block = if self.blocks.is_empty() { Vec::new() } else { Vec::with_capacity(BLOCK) };
                block.push(entry);
                self.blocks.push(block);
            }
        }
    }

    pub fn last(&self) -> Option<&Entry> {
        self.blocks.last()?.last()
    }

    /// Returns the entries of a range, cut at the end.
    pub fn slice(&self, range: Range<usize>) -> EntrySlice<'_> {
        let end = range.end.min(self.len());
        EntrySlice { blocks: &self.blocks, start: range.start.min(end), end }
    }

    /// Moves the entries that `goes_last` selects behind the others, keeping the order within each group. Returns the number of the others.
    pub fn partition(&mut self, goes_last: impl Fn(&Entry) -> bool) -> usize {
        let (mut first, mut last) = (Self::default(), Self::default());
        for entry in std::mem::take(&mut self.blocks).into_iter().flatten() {
            if goes_last(&entry) { last.push(entry) } else { first.push(entry) }
        }
        let count = first.len();
        last.blocks.into_iter().flatten().for_each(|entry| first.push(entry));
        *self = first;
        count
    }
}

/// Consecutive entries.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EntrySlice<'a> {
    blocks: &'a [Vec<Entry>],
    start: usize,
    end: usize,
}

impl<'a> EntrySlice<'a> {
    pub fn len(self) -> usize {
        self.end - self.start
    }

    pub fn get(self, at: usize) -> Option<&'a Entry> {
        let index = self.start + at;
        if index < self.end { self.blocks.get(index / BLOCK)?.get(index % BLOCK) } else { None }
    }

    pub fn iter(self) -> impl Iterator<Item = &'a Entry> {
        (0..self.len()).filter_map(move |at| self.get(at))
    }

    /// Returns the first index at which `is_before` is false; it is true for all entries before.
    pub fn partition_point(self, is_before: impl Fn(&Entry) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle).is_some_and(&is_before) { low = middle + 1 } else { high = middle }
        }
        low
    }
}
