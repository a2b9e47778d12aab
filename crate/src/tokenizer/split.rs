//! Encodes long texts in pieces. The `tokenizers` crate keeps more than a hundred bytes per token while it works, so a corpus of many
//! megabytes must not go through it at once. A cut is made only where it cannot change a token.

use std::collections::HashMap;

use super::unencodable;
use crate::error::Result;

/// Approximate size of a piece in bytes.
const PIECE_BYTES: usize = 256 * 1024;
/// Number of bytes of a text in which a cut between two words is searched for.
const SEARCHED_BYTES: usize = PIECE_BYTES + 64 * 1024;
/// Number of bytes at the end of a piece in which another cut is searched for, and the part of them that must show that it changes nothing.
const OVERLAP_BYTES: usize = 8 * 1024;
const MARGIN_BYTES: usize = 2 * 1024;
/// Maximum number of places that are tried.
const JOINTS: usize = 64;

/// Treatment of the space between two words at a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SplitRule {
    /// It begins the next piece.
    KeepSpace,
    /// It is left out, since the tokenizer puts one before every text.
    DropSpace,
    /// No cuts are made.
    Whole,
}

impl SplitRule {
    /// Allows cuts if no token reaches across letter, space, letter, and if the halves of probe texts give the tokens of the whole.
    pub fn probe(inner: &tokenizers::Tokenizer, vocab: &HashMap<String, u32>) -> Self {
        if vocab.keys().any(|token| crosses_words(token)) {
            return Self::Whole;
        }
        let ids = |text: &str| ids(inner, text).unwrap_or_default();
        let probes = [
            ("one of", " the words"),
            ("It was a", " b"),
            ("x\n\ny z", " Tests of\n w"),
            ("  so", " then  9 "),
        ];
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

    pub fn encode(self, inner: &tokenizers::Tokenizer, text: &str) -> Result<Vec<u32>> {
        let (mut ids, mut rest) = (Vec::new(), text);
        while let Some((part, used)) = self.next(inner, rest, true)?.filter(|_| !rest.is_empty()) {
            ids.extend(part);
            rest = rest.get(used..).unwrap_or_default();
        }
        Ok(ids)
    }

    /// Returns the ids of the next piece of a text, and its length in bytes, which depends only on the text; `None` if more of the text is
    /// needed and this is not the `last` part.
    pub fn next(
        self,
        inner: &tokenizers::Tokenizer,
        text: &str,
        last: bool,
    ) -> Result<Option<(Vec<u32>, usize)>> {
        if let Some((piece, used)) = self.cut(text) {
            return Ok(Some((ids(inner, piece)?, used)));
        }
        let mut most = SEARCHED_BYTES;
        while text.len() > most {
            let beginning = text.get(..text.floor_char_boundary(most)).unwrap_or(text);
            if let Some(found) = self.joint(inner, beginning)? {
                return Ok(Some(found));
            }
            most *= 2;
        }
        match last {
            true => Ok(Some((ids(inner, text)?, text.len()))),
            false => Ok(None),
        }
    }

    /// Returns the next piece, unless it is the last one, and its length including the part that is left out after it.
    fn cut(self, text: &str) -> Option<(&str, usize)> {
        if self == Self::Whole || text.len() <= PIECE_BYTES {
            return None;
        }
        let bytes = text.as_bytes();
        let searched = bytes.get(..SEARCHED_BYTES).unwrap_or(bytes);
        let between_words = |bytes: &[u8]| match bytes {
            [left, b' ', right] => left.is_ascii_lowercase() && right.is_ascii_lowercase(),
            _ => false,
        };
        let found = searched
            .windows(3)
            .skip(PIECE_BYTES)
            .position(between_words)?;
        let (piece, next) = text.split_at_checked(PIECE_BYTES + found + 1)?;
        Some((piece, piece.len() + self.left_out(next)))
    }

    /// The number of bytes at the beginning of a rest that are left out.
    fn left_out(self, rest: &str) -> usize {
        match self {
            Self::DropSpace => rest.len() - rest.trim_start_matches(' ').len(),
            Self::KeepSpace | Self::Whole => 0,
        }
    }

    /// Encodes `text`, the beginning of a longer one, up to a place near its end such that the rest, encoded separately, has the same ids
    /// as in the text. Returns these ids and the place. Used for texts without words between spaces.
    fn joint(self, inner: &tokenizers::Tokenizer, text: &str) -> Result<Option<(Vec<u32>, usize)>> {
        let encoding = inner.encode(text, false).map_err(unencodable)?;
        let (ids, offsets) = (encoding.get_ids(), encoding.get_offsets());
        let near = |at: usize| at + OVERLAP_BYTES >= text.len() && at + MARGIN_BYTES <= text.len();
        let begins = |index: &usize| {
            let start = offsets[*index].0;
            let before = index.checked_sub(1).map_or(0, |before| offsets[before].0);
            start > before && near(start) && text.is_char_boundary(start)
        };
        for index in (0..ids.len()).filter(begins).take(JOINTS) {
            let start = offsets[index].0;
            let left_out = self.left_out(&text[start..]);
            // Encoded separately, any other rest would begin with a space that it does not have in the text.
            if self == Self::DropSpace && left_out == 0 {
                continue;
            }
            let alone = self::ids(inner, &text[start + left_out..])?;
            let (before, after) = ids.split_at(index);
            if alone == after {
                return Ok(Some((before.to_vec(), start + left_out)));
            }
        }
        Ok(None)
    }
}

/// Encodes a text whole.
fn ids(inner: &tokenizers::Tokenizer, text: &str) -> Result<Vec<u32>> {
    let encoding = inner.encode_fast(text, false).map_err(unencodable)?;
    Ok(encoding.get_ids().to_vec())
}

/// Returns true if a token joins the end of one word to the beginning of the next.
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
