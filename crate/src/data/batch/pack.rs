//! Chooses the examples that share a sequence, and the order of sequences: a pure function of seed and epoch.

use std::collections::BTreeMap;

use super::examples::{ExampleSlice, StoredExample};
use crate::config::{DataOrder, OnLong};
use crate::data::read::NAMED_ROWS;
use crate::random;

/// Purpose of the noise that orders the data (shaders/README.md, "Noise").
const PURPOSE: &str = "data:";

/// Number of examples that are packed together. More would fill sequences little better, and mix the order less.
const POOL: usize = 4096;

/// A part of an example: its pairs of input and target from `start` on, as many as a sequence holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// Index of its example in the training part.
    pub example: u32,
    pub start: u32,
}

impl Piece {
    /// Returns the piece with which an example begins.
    fn first(example: usize) -> Self {
        Self {
            example: example as u32,
            start: 0,
        }
    }

    /// Returns the number of positions that it takes in a sequence.
    pub fn pairs(self, examples: ExampleSlice<'_>, seq_len: usize) -> usize {
        let length = examples.length(self.example as usize).unwrap_or_default();
        length.saturating_sub(1 + self.start as usize).min(seq_len)
    }
}

/// The pieces of examples, and counts of those that are too long.
#[derive(Debug, Clone, Default)]
pub(super) struct Pieces {
    examples: usize,
    /// `None` if each example is one piece, which needs no list.
    list: Option<Vec<Piece>>,
    /// Number of examples whose end is left out.
    pub cut: usize,
    /// Number of examples that are left out as too long.
    pub skipped: usize,
    /// Number of examples without a learned token within a sequence.
    pub untaught: usize,
    /// First rows that are cut or left out as too long, and first rows of untaught examples.
    pub long_rows: Vec<u32>,
    pub untaught_rows: Vec<u32>,
}

/// Adds a row to those that a warning names, up to their maximum.
fn name_row(rows: &mut Vec<u32>, example: &StoredExample) {
    if rows.len() < NAMED_ROWS {
        rows.push(example.row());
    }
}

impl Pieces {
    /// Divides examples into pieces of at most `seq_len` pairs.
    pub fn of(examples: ExampleSlice<'_>, seq_len: usize, on_long: OnLong) -> Self {
        let mut all = Self {
            examples: examples.len(),
            ..Self::default()
        };
        for (index, example) in examples.iter().enumerate() {
            let long = example.pairs() > seq_len;
            let skipped = long && on_long == OnLong::Skip;
            let split = long && example.document() && on_long == OnLong::Split;
            let taught = !skipped && example.teaches(0, seq_len);
            all.skipped += usize::from(skipped);
            all.cut += usize::from(long && !split && taught);
            if skipped || long && !split && taught {
                name_row(&mut all.long_rows, &example);
            }
            if taught && !split && all.list.is_none() {
                continue;
            }
            let list = all
                .list
                .get_or_insert_with(|| (0..index).map(Piece::first).collect());
            let before = list.len();
            let end = match split {
                true => example.pairs(),
                false => usize::from(!skipped),
            };
            let starts = (0..end).step_by(seq_len.max(1));
            let starts = starts.filter(|start| example.teaches(*start, seq_len));
            list.extend(starts.map(|start| Piece {
                example: index as u32,
                start: start as u32,
            }));
            if !skipped && list.len() == before {
                all.untaught += 1;
                name_row(&mut all.untaught_rows, &example);
            }
        }
        all
    }

    pub fn len(&self) -> usize {
        self.list.as_ref().map_or(self.examples, Vec::len)
    }

    pub fn get(&self, at: usize) -> Option<Piece> {
        match &self.list {
            Some(list) => list.get(at).copied(),
            None => (at < self.examples).then(|| Piece::first(at)),
        }
    }

    /// Returns the number of pieces of rows before `row`.
    pub fn before_row(&self, row: u32, examples: ExampleSlice<'_>) -> usize {
        let before = examples.partition_point(|example| example.row() < row);
        match &self.list {
            Some(list) => list.partition_point(|piece| (piece.example as usize) < before),
            None => before,
        }
    }
}

/// The sequences of an epoch, each a list of pieces.
#[derive(Debug, Clone, Default)]
pub(super) struct Windows {
    pieces: Vec<u32>,
    /// End of each sequence in `pieces`; `None` if each piece is a sequence.
    ends: Option<Vec<u32>>,
    /// Order of the sequences, if it differs from that of `ends`.
    order: Option<Vec<u32>>,
    /// Number of positions that all pieces take.
    pub held: u64,
}

impl Windows {
    pub fn len(&self) -> usize {
        self.ends.as_ref().unwrap_or(&self.pieces).len()
    }

    /// Returns the number of pieces in all sequences.
    pub fn items(&self) -> usize {
        self.pieces.len()
    }

    /// Returns the indices of the pieces of a sequence.
    pub fn get(&self, at: usize) -> Option<&[u32]> {
        let window = match &self.order {
            Some(order) => *order.get(at)? as usize,
            None => at,
        };
        let Some(ends) = &self.ends else {
            return self.pieces.get(window..=window);
        };
        let start = match window.checked_sub(1) {
            Some(before) => *ends.get(before)?,
            None => 0,
        };
        self.pieces.get(start as usize..*ends.get(window)? as usize)
    }
}

/// Shuffles items by seed and epoch, for the purpose with this name.
pub(super) fn shuffle<T>(items: &mut [T], seed: u64, epoch: u64, name: &str) {
    let key = random::key(PURPOSE, seed, name);
    for index in (1..items.len()).rev() {
        let other = random::below(key, index as u64, epoch, index as u64 + 1);
        items.swap(index, other as usize);
    }
}

/// Draws a number below `end` by seed and epoch.
pub(super) fn offset_below(end: u64, seed: u64, epoch: u64) -> u64 {
    random::below(random::key(PURPOSE, seed, "offset"), 0, epoch, end)
}

/// Parameters for putting pieces into the sequences of an epoch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packing {
    pub seq_len: usize,
    pub packing: bool,
    pub order: DataOrder,
    pub seed: u64,
    pub epoch: u64,
}

/// Puts the pieces with these indices into the sequences of an epoch, one piece each, or several that fit into `seq_len` positions. In the data's own order a sequence
/// takes pieces until the next one does not fit. Otherwise the shuffled pieces are packed in pools, the longest first, each where it leaves
/// the least room ("best fit, decreasing"), and the sequences are shuffled.
pub(super) fn windows(
    mut items: Vec<u32>,
    pieces: &Pieces,
    examples: ExampleSlice<'_>,
    how: Packing,
) -> Windows {
    let Packing {
        seq_len,
        packing,
        order,
        seed,
        epoch,
    } = how;
    let pairs = |item: u32| {
        let piece = pieces.get(item as usize);
        piece.map_or(0, |piece| piece.pairs(examples, seq_len))
    };
    let held = items.iter().map(|item| pairs(*item) as u64).sum();
    if order == DataOrder::Shuffled {
        shuffle(&mut items, seed, epoch, "order");
    }
    let alone = |items| Windows {
        pieces: items,
        held,
        ..Windows::default()
    };
    if !packing {
        return alone(items);
    }
    let mut ends = Vec::new();
    if order == DataOrder::Sequential {
        let mut room = seq_len;
        for (at, item) in items.iter().enumerate() {
            if pairs(*item) > room && at > 0 {
                ends.push(at as u32);
                room = seq_len;
            }
            room -= pairs(*item).min(room);
        }
        ends.extend((!items.is_empty()).then_some(items.len() as u32));
        return Windows {
            ends: Some(ends),
            ..alone(items)
        };
    }
    // `ends` stays empty while each piece is a sequence.
    let mut end = 0;
    for pool in items.chunks_mut(POOL) {
        // Pieces of equal length keep their seeded order.
        pool.sort_by_key(|item| std::cmp::Reverse(pairs(*item)));
        let windows = best_fit(pool, pairs, seq_len);
        if windows.len() < pool.len() && ends.is_empty() {
            ends.extend(1..=end);
        }
        let listed = windows.len() < pool.len() || !ends.is_empty();
        for window in &windows {
            end += window.len() as u32;
            ends.extend(listed.then_some(end));
        }
        pool.copy_from_slice(&windows.concat());
    }
    if ends.is_empty() {
        shuffle(&mut items, seed, epoch, "windows");
        return alone(items);
    }
    let mut order: Vec<u32> = (0..ends.len() as u32).collect();
    shuffle(&mut order, seed, epoch, "windows");
    Windows {
        ends: Some(ends),
        order: Some(order),
        ..alone(items)
    }
}

/// Puts each item where it leaves the least room, or into a sequence of its own.
fn best_fit(items: &[u32], pairs: impl Fn(u32) -> usize, seq_len: usize) -> Vec<Vec<u32>> {
    let mut windows: Vec<Vec<u32>> = Vec::new();
    // Windows by their number of free positions.
    let mut by_room: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &item in items {
        let need = pairs(item);
        let fitting = by_room.range_mut(need..).next();
        let fitting =
            fitting.and_then(|(room, windows)| Some((*room, windows.pop()?, windows.is_empty())));
        let (room, at) = match fitting {
            Some((room, at, last)) => {
                if last {
                    by_room.remove(&room);
                }
                (room, at)
            }
            None => {
                windows.push(Vec::new());
                (seq_len, windows.len() - 1)
            }
        };
        windows[at].push(item);
        by_room
            .entry(room.saturating_sub(need))
            .or_default()
            .push(at);
    }
    windows
}
