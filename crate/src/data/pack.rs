//! Which examples share a sequence, and in which order sequences come: a pure function of seed and epoch.

use std::collections::BTreeMap;

use super::store::Entry;
use crate::config::{DataOrder, OnLong};
use crate::error::{Error, Fault, Result};
use crate::random;

/// Purpose of the noise that orders the data (shaders/README.md, "Noise").
const PURPOSE: &str = "data:";

/// Examples that are packed together. More would fill sequences little better, and mix the order less.
const POOL: usize = 4096;

/// A part of an example: its pairs of input and target from `start` on, as many as a sequence holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// Index of its example among those that are trained on.
    pub example: u32,
    pub start: u32,
}

impl Piece {
    /// Positions that it takes in a sequence.
    pub fn pairs(self, entries: &[Entry], seq_len: usize) -> usize {
        entries.get(self.example as usize).map_or(0, |entry| entry.pairs().saturating_sub(self.start as usize).min(seq_len))
    }
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
    pub fn of(examples: &[Entry], seq_len: usize, on_long: OnLong) -> Self {
        let mut all = Self::default();
        for (index, example) in examples.iter().enumerate() {
            let long = example.pairs() > seq_len;
            if long && on_long == OnLong::Skip {
                all.skipped += 1;
                continue;
            }
            let split = long && example.document() && on_long == OnLong::Split;
            let starts = if split { (0..example.pairs()).step_by(seq_len.max(1)) } else { (0..1).step_by(1) };
            let before = all.pieces.len();
            for start in starts.filter(|start| example.teaches(*start, seq_len)) {
                all.pieces.push(Piece { example: index as u32, start: start as u32 });
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
    /// The order of the sequences, if it is another one.
    order: Option<Vec<u32>>,
    /// Positions that all pieces take.
    pub held: u64,
}

impl Windows {
    fn push(&mut self, window: &[u32]) {
        self.pieces.extend(window);
        self.ends.push(self.pieces.len() as u32);
    }

    /// Each piece by itself.
    fn apart(pieces: Vec<u32>, held: u64) -> Self {
        Self { ends: (1..=pieces.len() as u32).collect(), pieces, order: None, held }
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Indices of the pieces of a sequence.
    pub fn get(&self, at: usize) -> Option<&[u32]> {
        let window = self.order.as_ref().map_or(Some(at), |order| order.get(at).map(|window| *window as usize))?;
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

/// How often the rows of each file come in an epoch.
#[derive(Debug, Clone, Default)]
pub(super) struct Mixture {
    /// For each file, the index of the row after its last one, and its weight; none where all come once.
    files: Vec<(u32, f64)>,
}

impl Mixture {
    /// Refuses weights that are not those of the files.
    pub fn of(weights: &[f64], file_ends: &[u32], rows: bool) -> Result<Self> {
        if !weights.is_empty() && (!rows || weights.len() != file_ends.len()) {
            let rule =
                if rows { format!("one for each of {} files", file_ends.len()) } else { "none where the data are one stream".into() };
            return Err(Error::InvalidConfig(vec![Fault::new("data_weights", rule, format!("{weights:?}"))]));
        }
        Ok(Self { files: file_ends.iter().copied().zip(weights.iter().copied()).collect() })
    }

    /// Indices of the pieces of an epoch, in the order of the data: those of a file as many whole times as its weight says, and so large a share
    /// of them as is left of it, drawn by seed and epoch.
    fn items(&self, pieces: &Pieces, entries: &[Entry], seed: u64, epoch: u64) -> Vec<u32> {
        if self.files.is_empty() {
            return (0..pieces.pieces.len() as u32).collect();
        }
        let row = |piece: &Piece| entries.get(piece.example as usize).map_or(0, Entry::row);
        let (mut items, mut first) = (Vec::new(), 0);
        for (file, (end, weight)) in self.files.iter().enumerate() {
            let last = pieces.pieces.partition_point(|piece| row(piece) < *end);
            let mut own: Vec<u32> = (first as u32..last as u32).collect();
            first = last;
            for _ in 0..*weight as usize {
                items.extend(&own);
            }
            shuffle(&mut own, seed, epoch, &format!("mixture:{file}"));
            let share = (own.len() as f64 * weight.fract()).round() as usize;
            items.extend(own.iter().take(share));
        }
        items.sort_unstable();
        items
    }
}

/// How pieces are put into the sequences of an epoch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packing {
    pub seq_len: usize,
    pub packing: bool,
    pub order: DataOrder,
    pub seed: u64,
    pub epoch: u64,
}

/// The sequences of an epoch: each piece by itself, or several that fit into `seq_len` positions. In the data's own order a sequence takes pieces
/// until the next one does not fit; else the shuffled pieces are packed in pools, the longest first, each where it leaves the least room
/// ("best fit, decreasing"), and the sequences of a pool are shuffled.
pub(super) fn windows(pieces: &Pieces, entries: &[Entry], mixture: &Mixture, how: Packing) -> Windows {
    let Packing { seq_len, packing, order, seed, epoch } = how;
    let pairs = |item: u32| pieces.pieces.get(item as usize).map_or(0, |piece| piece.pairs(entries, seq_len));
    let mut items = mixture.items(pieces, entries, seed, epoch);
    let held = items.iter().map(|item| pairs(*item) as u64).sum();
    if order == DataOrder::Shuffled {
        shuffle(&mut items, seed, epoch, "order");
    }
    if !packing {
        return Windows::apart(items, held);
    }
    let mut windows = Windows { held, ..Windows::default() };
    if order == DataOrder::Sequential {
        let (mut window, mut room) = (Vec::new(), seq_len);
        for item in items {
            if pairs(item) > room && !window.is_empty() {
                windows.push(&window);
                window.clear();
                room = seq_len;
            }
            window.push(item);
            room -= pairs(item).min(room);
        }
        if !window.is_empty() {
            windows.push(&window);
        }
        return windows;
    }
    for pool in items.chunks_mut(POOL) {
        // Pieces of one length stay in the order of the seed.
        pool.sort_by_key(|item| std::cmp::Reverse(pairs(*item)));
        best_fit(pool, pairs, seq_len).iter().for_each(|window| windows.push(window));
    }
    let mut order: Vec<u32> = (0..windows.len() as u32).collect();
    shuffle(&mut order, seed, epoch, "windows");
    Windows { order: Some(order), ..windows }
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
