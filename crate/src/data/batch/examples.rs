//! The examples of a dataset: the place of their tokens, and how many of these are learned. Millions of them fit into a tab: an example takes
//! some 9 bytes.

use std::ops::Range;

/// Number of examples that are encoded together.
const BLOCK: usize = 256;
/// Number of lengths in an allocation, a multiple of [`BLOCK`]. A growing list would be copied, and a tab's memory never shrinks again.
const LENGTHS: usize = 1 << 16;

/// An example in the store.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StoredExample {
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

impl StoredExample {
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
        let rest = self.len().saturating_sub(start);
        first..first + pairs.saturating_add(1).min(rest)
    }
}

/// The examples of all examples. Their lengths, which packing needs in any order, are a list; the rest is encoded.
#[derive(Debug, Clone, Default)]
pub(super) struct StoredExamples {
    lengths: Vec<Vec<u32>>,
    /// Complete blocks.
    blocks: Vec<Box<[u8]>>,
    /// StoredExamples of the block that is not complete.
    rest: Vec<StoredExample>,
}

static NO_EXAMPLES: StoredExamples = StoredExamples {
    lengths: Vec::new(),
    blocks: Vec::new(),
    rest: Vec::new(),
};

impl StoredExamples {
    pub fn len(&self) -> usize {
        self.blocks.len() * BLOCK + self.rest.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn push(&mut self, example: StoredExample) {
        match self
            .lengths
            .last_mut()
            .filter(|lengths| lengths.len() < LENGTHS)
        {
            Some(lengths) => lengths.push(example.length),
            None => {
                // A small dataset gets a small list.
                let mut lengths = if self.lengths.is_empty() {
                    Vec::new()
                } else {
                    Vec::with_capacity(LENGTHS)
                };
                lengths.push(example.length);
                self.lengths.push(lengths);
            }
        }
        self.rest.push(example);
        if self.rest.len() == BLOCK {
            self.blocks.push(encoded(&self.rest));
            self.rest.clear();
        }
    }

    pub fn last(&self) -> Option<StoredExample> {
        self.slice(0..self.len()).get(self.len().checked_sub(1)?)
    }

    /// Returns the examples of a range, cut at the end.
    pub fn slice(&self, range: Range<usize>) -> ExampleSlice<'_> {
        let end = range.end.min(self.len());
        ExampleSlice {
            examples: self,
            start: range.start.min(end),
            end,
        }
    }

    /// Moves the examples that `goes_last` selects behind the others, keeping the order within each group. Returns the number of the others.
    pub fn partition(&mut self, goes_last: impl Fn(&StoredExample) -> bool) -> usize {
        let (mut first, mut last) = (Self::default(), Self::default());
        for example in self.slice(0..self.len()).iter() {
            let part = if goes_last(&example) {
                &mut last
            } else {
                &mut first
            };
            part.push(example);
        }
        let count = first.len();
        last.slice(0..last.len())
            .iter()
            .for_each(|example| first.push(example));
        *self = first;
        count
    }

    /// The examples of a block; those after the complete ones for any other.
    fn block(&self, block: usize) -> impl Iterator<Item = StoredExample> {
        let (bytes, lengths, rest): (&[u8], &[u32], _) = match self.blocks.get(block) {
            Some(bytes) => {
                let (list, start) = (block * BLOCK / LENGTHS, block * BLOCK % LENGTHS);
                (bytes, &self.lengths[list][start..start + BLOCK], &[][..])
            }
            None => (&[], &[], &self.rest[..]),
        };
        decoded(bytes, lengths).chain(rest.iter().copied())
    }
}

/// Encodes examples by what they add to the one before, in bytes of 7 bits: 5 of them for most examples.
fn encoded(examples: &[StoredExample]) -> Box<[u8]> {
    let mut bytes = Vec::with_capacity(examples.len() * 6);
    let mut before = StoredExample::default();
    for example in examples {
        let end = before.start.wrapping_add(before.length);
        let start = example.start.wrapping_sub(end);
        let unlearned = example
            .length
            .wrapping_sub(example.first)
            .wrapping_sub(example.learned);
        for mut value in [
            start,
            example.row.wrapping_sub(before.row),
            example.first,
            unlearned,
        ] {
            while value >= 0x80 {
                bytes.push(value as u8 | 0x80);
                value >>= 7;
            }
            bytes.push(value as u8);
        }
        before = *example;
    }
    bytes.into_boxed_slice()
}

/// Decodes the examples of these lengths.
fn decoded(bytes: &[u8], lengths: &[u32]) -> impl Iterator<Item = StoredExample> {
    let (mut bytes, mut before) = (bytes.iter(), StoredExample::default());
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
        before = StoredExample {
            start,
            length,
            row,
            first,
            learned,
        };
        before
    })
}

/// Consecutive examples.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExampleSlice<'a> {
    examples: &'a StoredExamples,
    start: usize,
    end: usize,
}

impl Default for ExampleSlice<'_> {
    fn default() -> Self {
        Self {
            examples: &NO_EXAMPLES,
            start: 0,
            end: 0,
        }
    }
}

impl<'a> ExampleSlice<'a> {
    pub fn len(self) -> usize {
        self.end - self.start
    }

    /// Returns an example, by decoding up to 256. To read many in order, [`ExampleSlice::iter`] or a [`Cursor`] decodes each once.
    pub fn get(self, at: usize) -> Option<StoredExample> {
        let index = self.start + at;
        let mut block = (index < self.end).then(|| self.examples.block(index / BLOCK))?;
        block.nth(index % BLOCK)
    }

    /// Returns the number of tokens of an example.
    pub fn length(self, at: usize) -> Option<usize> {
        let index = self.start + at;
        (index < self.end).then(|| self.examples.lengths[index / LENGTHS][index % LENGTHS] as usize)
    }

    pub fn iter(self) -> impl Iterator<Item = StoredExample> + 'a {
        let blocks = self.start / BLOCK..self.end.div_ceil(BLOCK);
        blocks
            .flat_map(move |block| self.examples.block(block))
            .skip(self.start % BLOCK)
            .take(self.len())
    }

    /// Returns the numbers of tokens of all examples.
    pub fn lengths(self) -> impl ExactSizeIterator<Item = u32> + 'a {
        (0..self.len()).map(move |at| self.length(at).unwrap_or_default() as u32)
    }

    /// Returns the first index at which `is_before` is false; it is true for all examples before.
    pub fn partition_point(self, is_before: impl Fn(&StoredExample) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(middle).is_some_and(|example| is_before(&example)) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }
}

/// Reads examples in order, of which some are skipped or read again.
pub(super) struct Cursor<'a> {
    examples: ExampleSlice<'a>,
    block: Vec<StoredExample>,
    /// Index of the first example of `block` among all.
    start: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(examples: ExampleSlice<'a>) -> Self {
        Self {
            examples,
            block: Vec::new(),
            start: 0,
        }
    }

    pub fn get(&mut self, at: usize) -> Option<StoredExample> {
        let index = self.examples.start + at;
        if index >= self.examples.end {
            return None;
        }
        if !(self.start..self.start + self.block.len()).contains(&index) {
            self.start = index - index % BLOCK;
            self.block = self.examples.examples.block(index / BLOCK).collect();
        }
        self.block.get(index - self.start).copied()
    }
}
