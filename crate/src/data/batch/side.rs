//! One side of the split into training and evaluation.

use std::borrow::Cow;

use super::examples::ExampleSlice;
use super::pack::Piece;
use super::store::TokenStore;
use crate::error::Result;

/// One side of the split.
#[derive(Debug, Clone, Copy)]
pub(super) enum Side<'a> {
    Text {
        tokens: &'a TokenStore,
        start: usize,
        end: usize,
    },
    Examples {
        examples: ExampleSlice<'a>,
        tokens: &'a TokenStore,
    },
}

impl<'a> Side<'a> {
    /// Returns its examples; empty for a stream.
    pub fn examples(self) -> ExampleSlice<'a> {
        match self {
            Self::Text { .. } => ExampleSlice::default(),
            Self::Examples { examples, .. } => examples,
        }
    }

    /// Returns the marked ids of a piece of an example.
    pub fn ids_of(self, piece: Piece, seq_len: usize) -> Result<Cow<'a, [u32]>> {
        match self.examples().get(piece.example as usize) {
            Some(example) => self
                .store()
                .read(example.range(piece.start as usize, seq_len)),
            None => Ok(Cow::Borrowed(&[])),
        }
    }

    /// The ids of both sides, marked if they are of examples.
    pub fn store(self) -> &'a TokenStore {
        let (Self::Text { tokens, .. } | Self::Examples { tokens, .. }) = self;
        tokens
    }

    pub fn tokens(self) -> usize {
        match self {
            Self::Text { start, end, .. } => end - start,
            Self::Examples { examples, .. } => {
                examples.lengths().map(|length| length as usize).sum()
            }
        }
    }
}
