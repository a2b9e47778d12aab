//! A part of a text that was read ahead.

use super::text::TextReader;
use crate::error::Result;

/// Number of bytes from which on text that was taken is dropped.
const TAKEN: usize = 1 << 20;

/// Text that was read ahead and not taken yet.
pub(super) struct Lookahead<'a> {
    reader: TextReader<'a>,
    text: String,
    taken: usize,
    /// Line of the next byte, counted from 1.
    pub line: usize,
}

impl<'a> Lookahead<'a> {
    pub fn new(reader: TextReader<'a>) -> Self {
        let line = reader.line();
        Self {
            reader,
            text: String::new(),
            taken: 0,
            line,
        }
    }

    /// Returns the text that was not taken.
    pub fn rest(&self) -> &str {
        self.text.get(self.taken..).unwrap_or_default()
    }

    /// Returns the number of blanks between the beginning of its line and the byte `at`; `None` if there is anything else.
    pub fn indentation(&self, at: usize) -> Option<usize> {
        let before = self.text.get(..self.taken + at)?;
        let blank = before.len() - before.trim_end_matches([' ', '\t']).len();
        before
            .get(..before.len() - blank)?
            .ends_with('\n')
            .then_some(blank)
    }

    /// Reads more text. Returns false at its end.
    pub fn more(&mut self) -> Result<bool> {
        if self.taken > TAKEN {
            self.text.drain(..self.taken);
            self.taken = 0;
        }
        let piece = self.reader.fill()?;
        let length = piece.len();
        self.text.push_str(piece);
        self.reader.take(length);
        Ok(length > 0)
    }

    /// Takes `count` bytes.
    pub fn take(&mut self, count: usize) {
        self.line += self
            .rest()
            .get(..count)
            .unwrap_or_default()
            .bytes()
            .filter(|byte| *byte == b'\n')
            .count();
        self.taken += count;
    }
}
