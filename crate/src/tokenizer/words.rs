//! Counts the words of texts, as GPT-2's expression divides them, piece by piece.

use std::collections::HashMap;

use regex::Regex;

use super::coverage::letter;
use super::pre::GPT2;
use super::{TOKENIZER_FILE, bad};
use crate::error::Result;

/// The part of [`GPT2`] that looks ahead, which a fast engine does not do: of spaces before a word, the last one is the word's.
const LOOK_AHEAD: &str = r"|\s+(?!\S)";
/// Number of bytes after a match without which more text might change it: `'re` is longer than `'`.
const AHEAD: usize = 4;

/// The words of texts with their counts.
#[derive(Debug)]
pub(super) struct Words {
    expression: Regex,
    counts: HashMap<String, u64>,
    /// Text that was not divided yet.
    pending: String,
    /// Length that `pending` must reach before it is divided: a word that is not complete must not be searched again with each piece.
    enough: usize,
    /// Number of bytes of all texts.
    pub bytes: u64,
}

impl Words {
    pub fn new() -> Result<Self> {
        let expression = Regex::new(&GPT2.replace(LOOK_AHEAD, ""));
        Ok(Self {
            expression: expression.map_err(|error| bad(TOKENIZER_FILE, error))?,
            counts: HashMap::new(),
            pending: String::new(),
            enough: 0,
            bytes: 0,
        })
    }

    /// Adds a piece of a text.
    pub fn push(&mut self, piece: &str) {
        self.bytes += piece.len() as u64;
        self.pending.push_str(piece);
        if self.pending.len() >= self.enough {
            let used = self.divide(false);
            self.pending.drain(..used);
            self.enough = if used == 0 { 2 * self.pending.len() } else { 0 };
        }
    }

    /// Ends the text.
    pub fn end(&mut self) {
        self.divide(true);
        self.pending.clear();
        self.enough = 0;
    }

    /// Counts the words at the beginning of the pending text that more text cannot change; those of the `last` piece are all. Returns their
    /// length in bytes.
    fn divide(&mut self, last: bool) -> usize {
        let (text, mut at) = (self.pending.as_str(), 0);
        while let Some(found) = self.expression.find_at(text, at) {
            if !last && found.end() + AHEAD > text.len() {
                break;
            }
            let word = found.as_str();
            let mut length = word.len();
            if found.end() < text.len() && word.starts_with(char::is_whitespace) {
                let mut characters = word.chars().rev();
                // A word may begin with one space; of several, all but the last one are a word.
                if let Some(space) = characters.next().filter(|c| c.is_whitespace()) {
                    let before = word.len() - space.len_utf8();
                    length = if before > 0 { before } else { length };
                }
            }
            let word = &word[..length];
            match self.counts.get_mut(word) {
                Some(count) => *count += 1,
                None => drop(self.counts.insert(word.to_owned(), 1)),
            }
            at = found.start() + length;
        }
        at
    }

    /// Returns the words, each byte as a letter, with their counts.
    pub fn counts(self) -> impl Iterator<Item = (String, u64)> {
        let spelled = |word: String| word.bytes().map(letter).collect();
        let counts = self.counts.into_iter();
        counts.map(move |(word, count)| (spelled(word), count))
    }

    /// Returns the number of bytes of the distinct words.
    pub fn distinct_bytes(&self) -> usize {
        self.counts.keys().map(String::len).sum()
    }
}
