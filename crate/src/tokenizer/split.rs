//! Encodes long texts in pieces. The `tokenizers` crate keeps more than a hundred bytes per token while it works, so a corpus of
//! many megabytes must not go through it at once. A cut is made only where it cannot change a token.

use std::collections::HashMap;

use super::bad;
use crate::error::Result;

/// Approximate size of a piece, in bytes.
const PIECE_BYTES: usize = 256 * 1024;

/// What happens to the space between two words at a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SplitRule {
    /// It begins the next piece.
    KeepSpace,
    /// It is left out, since the tokenizer puts one in front of every text.
    DropSpace,
    /// No cuts are made.
    Whole,
}

impl SplitRule {
    /// Allows cuts if no token reaches across letter, space, letter, and if the halves of probe texts give the tokens of the whole.
    pub(super) fn probe(inner: &tokenizers::Tokenizer, vocab: &HashMap<String, u32>) -> Self {
        if vocab.keys().any(|token| crosses_words(token)) {
            return Self::Whole;
        }
        let ids = |text: &str| inner.encode_fast(text, false).map(|e| e.get_ids().to_vec()).unwrap_or_default();
        let probes = [("one of", " the words"), ("It was a", " b"), ("x\n\ny z", " Tests of\n w"), ("  so", " then  9 ")];
        let fits = |drop: bool| {
            probes.iter().all(|(left, right)| {
                let cut = if drop { right.trim_start() } else { right };
                [ids(left), ids(cut)].concat() == ids(&format!("{left}{right}"))
            })
        };
        if fits(false) {
            Self::KeepSpace
        } else if fits(true) {
            Self::DropSpace
        } else {
            Self::Whole
        }
    }

    pub(super) fn encode(self, inner: &tokenizers::Tokenizer, text: &str) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        let mut rest = text;
        loop {
            let (piece, next) = self.cut(rest);
            ids.extend_from_slice(inner.encode_fast(piece, false).map_err(|e| bad("encode", e))?.get_ids());
            match next {
                Some(next) => rest = next,
                None => return Ok(ids),
            }
        }
    }

    /// The next piece and what follows it.
    fn cut(self, text: &str) -> (&str, Option<&str>) {
        if self == Self::Whole || text.len() <= PIECE_BYTES {
            return (text, None);
        }
        let found = text.as_bytes().windows(3).skip(PIECE_BYTES).position(|w| {
            let [left, space, right] = w else { return false };
            left.is_ascii_lowercase() && *space == b' ' && right.is_ascii_lowercase()
        });
        match found {
            Some(index) => {
                let (piece, next) = text.split_at(PIECE_BYTES + index + 1);
                (piece, Some(if self == Self::DropSpace { next.trim_start_matches(' ') } else { next }))
            }
            None => (text, None),
        }
    }
}

/// Whether a token joins the end of one word to the beginning of the next.
fn crosses_words(token: &str) -> bool {
    let is_space = |c: char| c.is_whitespace() || matches!(c, 'Ġ' | '▁');
    let mut letter_before = false;
    for character in token.chars() {
        if is_space(character) && letter_before {
            return true;
        }
        letter_before = character.is_ascii_lowercase();
    }
    false
}
