//! The examples of a dataset: the place of their tokens, and how many of these are learned. Millions of them fit into a tab: an example takes
//! some 9 bytes.

use std::ops::Range;

/// Number of entries that are encoded together.
const BLOCK: usize = 256;
/// Number of lengths in an allocation, a multiple of [`BLOCK`]. A growing list would be copied, and a tab's memory never shrinks again.
const LENGTHS: usize = 1 << 16;

/// An example in the store.
#[derive(Debug, Clone, Copy, Default)]
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
        first
            ..first
                + pairs
                    .saturating_add(1)
                    .min(self.len().saturating_sub(start))
    }
}

/// The entries of all examples. Their lengths, which packing needs in any order, are a list; the rest is encoded.
#[derive(Debug, Clone, Default)]
pub(super) struct Entries {
    lengths: Vec<Vec<u32>>,
    /// Complete blocks.
    blocks: Vec<Box<[u8]>>,
    /// Entries of the block that is not complete.
    rest: Vec<Entry>,
}

static NO_ENTRIES: Entries = Entries {
    lengths: Vec::new(),
    blocks: Vec::new(),
    rest: Vec::new(),
};

impl Entries {
    pub fn len(&self) -> usize {
        self.blocks.len() * BLOCK + self.rest.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn push(&mut self, entry: Entry) {
        match self
            .lengths
            .last_mut()
            .filter(|lengths| lengths.len() < LENGTHS)
        {
            Some(lengths) => lengths.push(entry.length),
            None => {
                // A small dataset gets a small list.
                let mut lengths = if self.lengths.is_empty() {
                    Vec::new()
                } else {
                    Vec::with_capacity(LENGTHS)
                };
                lengths.push(entry.length);
                self.lengths.push(lengths);
            }
        }
        self.rest.push(entry);
        if self.rest.len() == BLOCK {
            self.blocks.push(encoded(&self.rest));
            self.rest.clear();
        }
    }

    pub fn last(&self) -> Option<Entry> {
        self.slice(0..self.len()).get(self.len().checked_sub(1)?)
    }

    /// Returns the entries of a range, cut at the end.
    pub fn slice(&self, range: Range<usize>) -> EntrySlice<'_> {
        let end = range.end.min(self.len());
        EntrySlice {
            entries: self,
            start: range.start.min(end),
            end,
        }
    }

    /// Moves the entries that `goes_last` selects behind the others, keeping the order within each group. Returns the number of the others.
    pub fn partition(&mut self, goes_last: impl Fn(&Entry) -> bool) -> usize {
        let (mut first, mut last) = (Self::default(), Self::default());
        for entry in self.slice(0..self.len()).iter() {
            if goes_last(&entry) {
                last.push(entry)
            } else {
                first.push(entry)
            }
        }
        let count = first.len();
        last.slice(0..last.len())
            .iter()
            .for_each(|entry| first.push(entry));
        *self = first;
        count
    }

    /// Returns the lengths of a block's entries.
    fn lengths_of(&self, block: usize) -> &[u32] {
        let start = block * BLOCK;
        let lengths = self
            .lengths
            .get(start / LENGTHS)
            .map_or(&[][..], Vec::as_slice);
        let within = start % LENGTHS;
        lengths
            .get(within..(within + BLOCK).min(lengths.len()))
            .unwrap_or_default()
    }

    /// Returns the entries of a block.
    fn block(&self, block: usize) -> impl Iterator<Item = Entry> {
        let encoded = self.blocks.get(block);
        let rest = if encoded.is_none() {
            &self.rest[..]
        } else {
            &[]
        };
        let bytes = encoded.map_or(&[][..], |bytes| bytes);
        let lengths = if encoded.is_none() {
            &[]
        } else {
            self.lengths_of(block)
        };
        decoded(bytes, lengths).chain(rest.iter().copied())
    }
}

/// Encodes entries by what they add to the one before, in bytes of 7 bits: 5 of them for most examples.
fn encoded(entries: &[Entry]) -> Box<[u8]> {
    let (mut bytes, mut before) = (Vec::with_capacity(entries.len() * 6), Entry::default());
    for entry in entries {
        let start = entry
            .start
            .wrapping_sub(before.start.wrapping_add(before.length));
        let unlearned = entry
            .length
            .wrapping_sub(entry.first)
            .wrapping_sub(entry.learned);
        for mut value in [
            start,
            entry.row.wrapping_sub(before.row),
            entry.first,
            unlearned,
        ] {
            while value >= 0x80 {
                bytes.push(value as u8 | 0x80);
                value >>= 7;
            }
            bytes.push(value as u8);
        }
        before = *entry;
    }
    bytes.into_boxed_slice()
}

/// Decodes the entries of these lengths.
fn decoded(bytes: &[u8], lengths: &[u32]) -> impl Iterator<Item = Entry> {
    let (mut bytes, mut before) = (bytes.iter(), Entry::default());
    lengths.iter().map(move |&length| {
        let mut next = || {
            let (mut value, mut shift) = (0u32, 0);
            for byte in bytes.by_ref() {
                value |= u32::from(byte & 0x7f) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    break;
                }
            }
            value
        };
        let start = next().wrapping_add(before.start.wrapping_add(before.length));
        let (row, first) = (next().wrapping_add(before.row), next());
        let learned = length.wrapping_sub(first).wrapping_sub(next());
        before = Entry {
            start,
            length,
            row,
            first,
            learned,
        };
        before
    })
}

/// Consecutive entries.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntrySlice<'a> {
    entries: &'a Entries,
    start: usize,
    end: usize,
}

impl Default for EntrySlice<'_> {
    fn default() -> Self {
        Self {
            entries: &NO_ENTRIES,
            start: 0,
            end: 0,
        }
    }
}

impl<'a> EntrySlice<'a> {
    pub fn len(self) -> usize {
        self.end - self.start
    }

    /// Returns an entry, by decoding up to 256. To read many in order, [`EntrySlice::iter`] or a [`Cursor`] decodes each once.
    pub fn get(self, at: usize) -> Option<Entry> {
        let index = self.start + at;
        if index < self.end {
            self.entries.block(index / BLOCK).nth(index % BLOCK)
        } else {
            None
        }
    }

    /// Returns the number of tokens of an entry.
    pub fn length(self, at: usize) -> Option<usize> {
        let index = self.start + at;
        let length = (index < self.end).then(|| {
            self.entries
                .lengths
                .get(index / LENGTHS)?
                .get(index % LENGTHS)
        })??;
        Some(*length as usize)
    }

    pub fn iter(self) -> impl Iterator<Item = Entry> + 'a {
        let blocks = self.start / BLOCK..self.end.div_ceil(BLOCK);
        blocks
            .flat_map(move |block| self.entries.block(block))
            .skip(self.start % BLOCK)
            .take(self.len())
    }

    /// Returns the numbers of tokens of all entries.
    pub fn lengths(self) -> impl ExactSizeIterator<Item = u32> + 'a {
        (0..self.len()).map(move |at| self.length(at).unwrap_or_default() as u32)
    }

    /// Returns the first index at which `is_before` is false; it is true for all entries before.
    pub fn partition_point(self, is_before: impl Fn(&Entry) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle).is_some_and(|entry| is_before(&entry)) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        low
    }
}

/// Reads entries in order, of which some are skipped or read again.
pub(super) struct Cursor<'a> {
    entries: EntrySlice<'a>,
    block: Vec<Entry>,
    /// Index of the first entry of `block` among all.
    start: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(entries: EntrySlice<'a>) -> Self {
        Self {
            entries,
            block: Vec::new(),
            start: 0,
        }
    }

    pub fn get(&mut self, at: usize) -> Option<Entry> {
        let index = self.entries.start + at;
        if index >= self.entries.end {
            return None;
        }
        if !(self.start..self.start + self.block.len()).contains(&index) {
            self.start = index - index % BLOCK;
            self.block.clear();
            self.block.extend(self.entries.entries.block(index / BLOCK));
        }
        self.block.get(index - self.start).copied()
    }
}
