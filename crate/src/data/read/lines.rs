//! The lines of a text, which end with LF, CR LF or CR.

use super::row::ROW_BYTES;
use super::text::TextReader;
use crate::error::Result;

/// A line with its end.
#[derive(Default)]
pub(super) struct Line {
    pub text: String,
    /// True if it has more than [`ROW_BYTES`], and is not kept.
    pub long: bool,
}

impl Line {
    /// Returns the line without its end.
    pub fn body(&self) -> &str {
        self.text.trim_end_matches(['\r', '\n'])
    }

    /// Returns the number of its fields, if quotes are characters like others.
    pub fn count(&self, delimiter: char) -> usize {
        self.body().matches(delimiter).count() + 1
    }

    fn push(&mut self, part: &str) {
        self.long |= self.text.len() + part.len() > ROW_BYTES;
        if self.long {
            self.text.clear();
        } else {
            self.text.push_str(part);
        }
    }
}

/// Reads lines.
pub(super) struct Lines<'a>(pub TextReader<'a>);

impl Lines<'_> {
    /// Returns the next line; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Line>> {
        let mut line = Line::default();
        loop {
            let piece = self.0.fill()?;
            if piece.is_empty() {
                return Ok((line.long || !line.text.is_empty()).then_some(line));
            }
            let end = piece.find(['\n', '\r']);
            let part = end.map_or(piece, |at| &piece[..=at]);
            let (taken, returns) = (part.len(), part.ends_with('\r'));
            line.push(part);
            self.0.take(taken);
            if returns && self.0.fill()?.starts_with('\n') {
                line.push("\n");
                self.0.take(1);
            }
            if end.is_some() {
                return Ok(Some(line));
            }
        }
    }
}
