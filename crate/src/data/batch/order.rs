//! The sequences of an epoch, in order: a pure function of seed and epoch.

use std::borrow::Cow;

use super::mixture::Mixture;
use super::pack::{Packing, Pieces, Windows, offset_below, shuffle, windows};
use super::side::Side;
use crate::config::{DataOrder, OnLong};
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
    pub fn of(side: Side<'_>, seq_len: usize, on_long: OnLong, mixture: Mixture) -> Result<Self> {
        match side {
            Side::Text { start, end, .. } if end - start <= seq_len => Err(Error::DataTooShort {
                need: seq_len.saturating_add(1),
                have: end - start,
            }),
            Side::Text { start, end, .. } if end - start > u32::MAX as usize => {
                Err(Error::DataTokens {
                    reason: format!("expected fewer than 2^32 ids, found {}", end - start),
                })
            }
            Side::Text { start, end, .. } => Ok(Self::Text {
                tokens: end - start,
            }),
            Side::Examples { examples, .. } => {
                let pieces = Pieces::of(examples, seq_len, on_long);
                if pieces.len() == 0 {
                    return Err(Error::DataNoTargets {
                        examples: examples.len(),
                        seq_len,
                    });
                }
                Ok(Self::Examples(pieces, mixture))
            }
        }
    }

    /// Returns the sequences of an epoch, in order.
    pub fn order(&self, side: Side<'_>, how: Packing) -> Order {
        let Packing {
            seed,
            seq_len,
            epoch,
            ..
        } = how;
        let tokens = match self {
            Self::Examples(pieces, mixture) => {
                return Order::Windows(windows(
                    mixture.items(pieces, side.examples(), seed, epoch),
                    pieces,
                    side.examples(),
                    how,
                ));
            }
            Self::Text { tokens } => tokens,
        };
        // Any offset below T that leaves room for one window. It varies the boundaries of windows, and the tokens outside all windows, from
        // epoch to epoch. In the data's own order nothing is left out: the last window is as long as the rest.
        let shuffled = how.order == DataOrder::Shuffled;
        let room = tokens.saturating_sub(seq_len + 1).min(seq_len - 1);
        let (offset, end) = if shuffled {
            (offset_below(room as u64 + 1, seed, epoch) as usize, seq_len)
        } else {
            (0, 1)
        };
        let mut starts: Vec<u32> = (offset..tokens.saturating_sub(end))
            .step_by(seq_len)
            .map(|start| start as u32)
            .collect();
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
        window
            .iter()
            .filter_map(|piece| all.get(*piece as usize))
            .map(|piece| side.ids_of(piece, seq_len))
            .collect()
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
