//! Examples token by token, as a step learns them.

use serde::Serialize;

use super::dataset::Dataset;
use super::pack::{Piece, Pieces};
use super::side::Side;
use super::store::LEARNED;
use crate::config::TrainConfig;
use crate::data::read::RowPlace;
use crate::error::Result;
use crate::tokenizer::Tokenizer;

/// A training example, or the beginning of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Preview {
    /// Place of its row; null for the beginning of a stream.
    pub row: Option<RowPlace>,
    /// Its tokens, in runs of learned tokens and runs of tokens that are only read.
    pub segments: Vec<Segment>,
}

/// A run of tokens that are all learned, or all only read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Segment {
    /// Text of the tokens.
    pub text: String,
    /// The tokens.
    pub tokens: Vec<PreviewToken>,
    /// True if they are targets of the loss.
    pub learned: bool,
}

/// A token of a preview.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PreviewToken {
    /// Id of the token.
    pub id: u32,
    /// Text of the token; the replacement character represents parts of a character.
    pub text: String,
}

#[doc(hidden)]
impl Dataset {
    /// Returns the first `show` pieces of training examples, in the order of the data, cut as in a run with these settings; for a stream,
    /// its first sequence.
    ///
    /// # Errors
    /// Errors of the tokenizer and of the token storage.
    pub fn preview(
        &self,
        config: &TrainConfig,
        tokenizer: &Tokenizer,
        show: usize,
    ) -> Result<Vec<Preview>> {
        let side = self.train();
        if let Side::Text { tokens, end, .. } = side {
            let ids = tokens.read(0..end.min(config.seq_len.saturating_add(1)))?;
            let all: Vec<u32> = ids.iter().map(|id| id | LEARNED).collect();
            let beginning = |_| {
                let (row, segments) = (None, segments(&all, tokenizer)?);
                Ok(Preview { row, segments })
            };
            return (0..show.min(1)).map(beginning).collect();
        }
        let pieces = Pieces::of(side.examples(), config.seq_len, config.on_long);
        let of_piece = |piece: Piece| {
            let example = side.examples().get(piece.example as usize);
            let row = example.and_then(|example| self.account.place(example.row()));
            let segments = segments(&side.ids_of(piece, config.seq_len)?, tokenizer)?;
            Ok(Preview { row, segments })
        };
        let shown = (0..show).map_while(|at| pieces.get(at));
        shown.map(of_piece).collect()
    }
}

/// Divides marked ids into runs that are learned or only read. The first id is never a target.
fn segments(marked: &[u32], tokenizer: &Tokenizer) -> Result<Vec<Segment>> {
    let mut segments: Vec<Segment> = Vec::new();
    for (at, marked) in marked.iter().enumerate() {
        let (id, learned) = (marked & !LEARNED, marked & LEARNED != 0 && at > 0);
        let text = tokenizer.token_text(id)?;
        let token = PreviewToken { id, text };
        match segments.last_mut().filter(|last| last.learned == learned) {
            Some(last) => last.tokens.push(token),
            None => segments.push(Segment {
                text: String::new(),
                tokens: vec![token],
                learned,
            }),
        }
    }
    for segment in &mut segments {
        let texts = segment.tokens.iter().map(|token| token.text.as_str());
        segment.text = texts.collect();
        if segment.text.contains('\u{fffd}') {
            let ids: Vec<u32> = segment.tokens.iter().map(|token| token.id).collect();
            segment.text = tokenizer.decode(&ids)?;
        }
    }
    Ok(segments)
}
