//! The sequences of an epoch, in order: a pure function of seed and epoch.

use std::borrow::Cow;

use super::mixture::Mixture;
use super::pack::{Packing, Pieces, Windows, offset_below, shuffle, windows};
use super::side::Side;
use crate::config::{DataOrder, TrainConfig};
use crate::error::{Error, Result};

/// Source of the sequences.
#[derive(Debug, Clone)]
pub(super) enum Source {
    Text { tokens: usize },
    Examples(Pieces, Mixture),
}

/// The sequences of an epoch.
#[derive(Debug, Clone)]
pub(super) enum Order {
    /// Start of each window of a text.
    Starts(Vec<u32>),
    Windows(Windows),
}

impl Source {
    /// Divides the data of a run, whose files have these ends.
    pub fn of(side: Side<'_>, config: &TrainConfig, file_ends: &[u32]) -> Result<Self> {
        let seq_len = config.seq_len;
        match side {
            Side::Text { .. } if side.tokens() <= seq_len => Err(Error::DataTooShort {
                need: seq_len.saturating_add(1),
                have: side.tokens(),
            }),
            Side::Text { .. } if side.tokens() > u32::MAX as usize => Err(Error::DataTokens {
                reason: format!("expected fewer than 2^32 ids, found {}", side.tokens()),
            }),
            Side::Text { .. } => Ok(Self::Text {
                tokens: side.tokens(),
            }),
            Side::Examples { examples, .. } => {
                let pieces = Pieces::of(examples, seq_len, config.on_long);
                if pieces.len() == 0 {
                    return Err(Error::DataNoTargets {
                        examples: examples.len(),
                        seq_len,
                    });
                }
                let mixture = Mixture::of(&config.data_weights, file_ends, &pieces, examples);
                Ok(Self::Examples(pieces, mixture))
            }
        }
    }

    /// The sequences of an epoch, in order.
    pub fn order(&self, side: Side<'_>, how: Packing) -> Order {
        let Packing {
            seed,
            seq_len,
            epoch,
            ..
        } = how;
        let tokens = match self {
            Self::Examples(pieces, mixture) => {
                let items = mixture.items(pieces.len(), seed, epoch);
                return Order::Windows(windows(items, pieces, side.examples(), how));
            }
            Self::Text { tokens } => tokens,
        };
        // Any offset below T that leaves room for one window. It varies the boundaries of windows, and the tokens outside all windows, from
        // epoch to epoch. In the data's own order nothing is left out: the last window is as long as the rest.
        let shuffled = how.order == DataOrder::Shuffled;
        let room = tokens.saturating_sub(seq_len + 1).min(seq_len - 1);
        let (offset, end) = match shuffled {
            true => (offset_below(room as u64 + 1, seed, epoch) as usize, seq_len),
            false => (0, 1),
        };
        let starts = (offset..tokens.saturating_sub(end)).step_by(seq_len);
        let mut starts: Vec<u32> = starts.map(|start| start as u32).collect();
        if shuffled {
            shuffle(&mut starts, seed, epoch, "order");
        }
        Order::Starts(starts)
    }

    /// Returns the marked ids of each piece of a sequence.
    pub fn pieces<'a>(
        &self,
        window: &[u32],
        side: Side<'a>,
        seq_len: usize,
    ) -> Result<Vec<Cow<'a, [u32]>>> {
        let Self::Examples(all, _) = self else {
            return Ok(Vec::new());
        };
        let pieces = window.iter().filter_map(|piece| all.get(*piece as usize));
        pieces.map(|piece| side.ids_of(piece, seq_len)).collect()
    }
}

impl Order {
    /// Returns the number of positions in all sequences that hold tokens of examples.
    pub fn held(&self) -> u64 {
        match self {
            Self::Starts(_) => 0,
            Self::Windows(windows) => windows.held,
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Starts(starts) => starts.len(),
            Self::Windows(windows) => windows.len(),
        }
    }
}
