//! Which examples share a sequence, and in which order sequences come: a pure function of seed and epoch.

use std::collections::BTreeMap;

use super::example::Example;
use crate::config::{DataOrder, OnLong};
use crate::random;

/// Purpose of the noise that orders the data (shaders/README.md, "Noise").
const PURPOSE: &str = "data:";

/// Examples that are packed together. More would fill sequences little better, and mix the order less.
const POOL: usize = 4096;

/// A part of an example: its pairs of input and target from `start` on, as many as a sequence holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub example: u32,
    pub start: u32,
    /// Positions that it takes in a sequence.
    pub pairs: u32,
}

/// The pieces of examples, and what became of those that are too long.
#[derive(Debug, Clone, Default)]
pub(super) struct Pieces {
    pub pieces: Vec<Piece>,
    /// Examples whose end is left out.
    pub cut: usize,
    /// Examples that are left out as too long.
    pub skipped: usize,
    /// Examples without a learned token within a sequence.
    pub untaught: usize,
}

impl Pieces {
    /// Cuts examples into pieces of at most `seq_len` pairs.
    pub fn of(examples: &[Example], seq_len: usize, on_long: OnLong) -> Self {
        let mut all = Self::default();
        for (index, example) in examples.iter().enumerate() {
            let long = example.pairs() > seq_len;
            if long && on_long == OnLong::Skip {
                all.skipped += 1;
                continue;
            }
            let split = long && example.document && on_long == OnLong::Split;
            let starts = if split { (0..example.pairs()).step_by(seq_len.max(1)) } else { (0..1).step_by(1) };
            let before = all.pieces.len();
            for start in starts.filter(|start| example.teaches(*start, seq_len)) {
                let pairs = (example.pairs() - start).min(seq_len) as u32;
                all.pieces.push(Piece { example: index as u32, start: start as u32, pairs });
            }
            all.untaught += usize::from(all.pieces.len() == before);
            all.cut += usize::from(long && !split && all.pieces.len() > before);
        }
        all
    }
}

/// The sequences of an epoch, each a list of pieces.
#[derive(Debug, Clone, Default)]
pub(super) struct Windows {
    pieces: Vec<u32>,
    /// Where the pieces of each sequence end.
    ends: Vec<u32>,
}

impl Windows {
    fn new(windows: impl Iterator<Item = Vec<u32>>) -> Self {
        let mut all = Self::default();
        for window in windows {
            all.pieces.extend(window);
            all.ends.push(all.pieces.len() as u32);
        }
        all
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Indices of the pieces of a sequence.
    pub fn get(&self, window: usize) -> Option<&[u32]> {
        let end = *self.ends.get(window)? as usize;
        let start = window.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |end| *end as usize);
        self.pieces.get(start..end)
    }
}

/// Puts items in the order of a seed and an epoch, for the purpose of this name.
pub(super) fn shuffle<T>(items: &mut [T], seed: u64, epoch: u64, name: &str) {
    let key = random::key(PURPOSE, seed, name);
    for index in (1..items.len()).rev() {
        items.swap(index, random::below(key, index as u64, epoch, index as u64 + 1) as usize);
    }
}

/// A number below `end` of a seed and an epoch.
pub(super) fn offset_below(end: u64, seed: u64, epoch: u64) -> u64 {
    random::below(random::key(PURPOSE, seed, "offset"), 0, epoch, end)
}

/// The sequences of `epoch`: each piece by itself, or several that fit into `seq_len` positions. In the data's own order a sequence takes pieces
/// until the next one does not fit; else the shuffled pieces are packed in pools, the longest first, each where it leaves the least room
/// ("best fit, decreasing"), and the sequences of a pool are shuffled.
pub(super) fn windows(pieces: &[Piece], seq_len: usize, packing: bool, order: DataOrder, seed: u64, epoch: u64) -> Windows {
    let mut items: Vec<u32> = (0..pieces.len() as u32).collect();
    let pairs = |item: u32| pieces.get(item as usize).map_or(0, |piece| piece.pairs as usize);
    if order == DataOrder::Shuffled {
        shuffle(&mut items, seed, epoch, "order");
    }
    if !packing {
        return Windows::new(items.into_iter().map(|item| vec![item]));
    }
    if order == DataOrder::Sequential {
        let mut windows: Vec<Vec<u32>> = Vec::new();
        let mut room = 0;
        for item in items {
            match windows.last_mut().filter(|_| pairs(item) <= room) {
                Some(window) => window.push(item),
                None => {
                    windows.push(vec![item]);
                    room = seq_len;
                }
            }
            room -= pairs(item).min(room);
        }
        return Windows::new(windows.into_iter());
    }
    let mut windows = Vec::new();
    for pool in items.chunks_mut(POOL) {
        // Pieces of one length stay in the order of the seed.
        pool.sort_by_key(|item| std::cmp::Reverse(pairs(*item)));
        windows.extend(best_fit(pool, pairs, seq_len));
    }
    shuffle(&mut windows, seed, epoch, "windows");
    Windows::new(windows.into_iter())
}

/// Each item where it leaves the least room, or in a sequence of its own.
fn best_fit(items: &[u32], pairs: impl Fn(u32) -> usize, seq_len: usize) -> Vec<Vec<u32>> {
    let mut windows: Vec<Vec<u32>> = Vec::new();
    // Windows by the positions that are left in them.
    let mut by_room: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &item in items {
        let need = pairs(item);
        let fitting = by_room.range_mut(need..).next().and_then(|(room, windows)| Some((*room, windows.pop()?, windows.is_empty())));
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
        by_room.entry(room.saturating_sub(need)).or_default().push(at);
    }
    windows
}
