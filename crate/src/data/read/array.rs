//! The rows of a JSON array. A faulty one costs no other: reading continues at the next element.

use serde::de::IgnoredAny;

use super::boundary::{Keys, first_key};
use super::element::{Element, End};
use super::note::Note;
use super::row::{self, ROW_BYTES, Row, object, too_long};
use super::text::TextReader;
use crate::error::Result;

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Begin,
    /// After the bracket that opens the array.
    Opened,
    /// After a comma.
    Row,
    /// After a row.
    Comma,
    /// After the end of the array.
    Closed,
    Ended,
}

/// The rows of an array, which is the whole file or inside an object.
pub(super) struct Array<'a> {
    reader: TextReader<'a>,
    inside: bool,
    /// True if the file is the beginning of a longer one.
    partial: bool,
    state: State,
    keys: Keys,
    /// Notes on what is between the rows, with their lines.
    pub notes: Vec<(usize, Note)>,
}

impl<'a> Array<'a> {
    /// Reads the array whose bracket comes next, `inside` of an object or not.
    pub fn new(reader: TextReader<'a>, inside: bool, partial: bool) -> Self {
        Self {
            reader,
            inside,
            partial,
            state: State::Begin,
            keys: Keys::default(),
            notes: Vec::new(),
        }
    }

    fn note(&mut self, found: &'static str) {
        self.notes.push((self.reader.line, Note::Between(found)));
    }

    /// Skips white space and comments. Returns the next byte; `None` at the end.
    fn skip(&mut self) -> Result<Option<u8>> {
        loop {
            let rest = self.reader.rest();
            self.reader.take(rest.len() - rest.trim_start().len());
            if matches!(self.reader.rest().as_bytes(), [] | [b'/']) && self.reader.more()? {
                continue;
            }
            let (begin, end) = match self.reader.rest().as_bytes() {
                [b'#', ..] => ("#", "\n"),
                [b'/', b'/', ..] => ("//", "\n"),
                [b'/', b'*', ..] => ("/*", "*/"),
                bytes => return Ok(bytes.first().copied()),
            };
            self.note("a comment, which JSON does not have");
            let comment = loop {
                match self.reader.after(begin.len()).find(end) {
                    Some(at) => break begin.len() + at + end.len(),
                    None if !self.reader.more()? => break self.reader.rest().len(),
                    None => {}
                }
            };
            self.reader.take(comment);
        }
    }

    pub fn next(&mut self) -> Result<Option<(usize, Row)>> {
        loop {
            let next = self.skip()?;
            match (self.state, next) {
                (State::Ended, _) => return Ok(None),
                (State::Closed, None) => self.state = State::Ended,
                (_, None) => {
                    if !self.partial {
                        self.note("the end of the file within the array");
                    }
                    self.state = State::Ended;
                }
                (State::Begin | State::Closed, Some(b'[')) => {
                    if self.state == State::Closed {
                        self.note("a second array");
                    }
                    self.reader.take(1);
                    self.state = State::Opened;
                }
                (State::Opened | State::Row | State::Comma, Some(b']')) => {
                    if self.state == State::Row {
                        self.note("a comma without a row after it");
                    }
                    self.reader.take(1);
                    self.close()?;
                }
                (State::Comma, Some(b',')) => {
                    self.reader.take(1);
                    self.state = State::Row;
                }
                (State::Opened | State::Row, Some(b',')) => {
                    self.note("a comma without a row before it");
                    self.reader.take(1);
                    self.state = State::Row;
                }
                (State::Comma, Some(b'}')) => {
                    self.note("a bracket too many");
                    self.reader.take(1);
                }
                (State::Closed, Some(next @ (b',' | b'{'))) => {
                    self.note("something after the end of the array");
                    self.reader.take(usize::from(next == b','));
                    self.state = if next == b',' {
                        State::Closed
                    } else {
                        State::Row
                    };
                }
                (State::Begin | State::Closed, Some(_)) => {
                    self.note("something after the end of the array");
                    let row = self.keys.find(&mut self.reader, 0, true, false)?;
                    self.go_to(row);
                }
                (State::Comma, Some(_)) => {
                    self.note("neither a comma nor the end of the array");
                    self.state = State::Row;
                }
                (State::Opened | State::Row, Some(_)) => return self.element().map(Some),
            }
        }
    }

    /// Checks what follows the array: in an object its end, or its next key.
    fn close(&mut self) -> Result<()> {
        self.state = State::Closed;
        if !std::mem::take(&mut self.inside) {
            return Ok(());
        }
        match self.skip()? {
            Some(b'}') => self.reader.take(1),
            Some(b',') if self.reader.next_after(1)? == Some('"') => self.state = State::Ended,
            _ => {}
        }
        Ok(())
    }

    /// Continues at the row that begins at `row`, or ends.
    fn go_to(&mut self, row: Option<usize>) {
        self.reader.take(row.unwrap_or(self.reader.rest().len()));
        self.state = row.map_or(State::Ended, |_| State::Row);
    }

    /// Reads the element that begins here.
    fn element(&mut self) -> Result<(usize, Row)> {
        let (line, mut element, mut at, mut long) =
            (self.reader.line, Element::default(), 0, false);
        let end = loop {
            let text = self.reader.after(at);
            let end = element.take_all(text.as_bytes(), at);
            if end.is_some() {
                break end;
            }
            at += text.len();
            if at > ROW_BYTES {
                long = true;
                self.reader.take(at);
                (at, element.last_token) = (0, 0);
            }
            if !self.reader.more()? {
                break None;
            }
        };
        let read = |text: &str| match long {
            true => Err(too_long()),
            false => row::value(text, line).and_then(object),
        };
        let whole = match end {
            Some(End::Whole(end)) if self.is_followed(end)? => Some(end),
            _ => None,
        };
        let Some(end) = whole else {
            // A missing quote hides the rows after it, so that the next one is recognized by its first key.
            let own = first_key(self.reader.rest());
            self.keys.learn(own);
            let next = match end {
                Some(End::Next(at)) if self.begins_object(at)? => Some(at),
                _ => {
                    let any = !self.reader.rest().starts_with(['{', '[']);
                    self.keys
                        .find(&mut self.reader, element.last_token, any, self.inside)?
                }
            };
            let rest = self.reader.rest();
            let text = rest.get(..next.unwrap_or(rest.len())).unwrap_or_default();
            let next = next.map(|next| bare_after_object(text).unwrap_or(next));
            let text = text.get(..next.unwrap_or(text.len())).unwrap_or_default();
            let row = read(text.trim_end().trim_end_matches(','));
            self.go_to(next);
            return Ok((line, row));
        };
        let text = self.reader.rest().get(..end).unwrap_or_default();
        let row = read(text);
        if row.is_ok() {
            let key = first_key(text);
            self.keys.learn(key);
        }
        self.reader.take(end);
        self.state = State::Comma;
        Ok((line, row))
    }

    /// Returns true unless the bracket at `at` is that of a text: an object does not begin with a backslash.
    fn begins_object(&mut self, at: usize) -> Result<bool> {
        Ok(self.reader.next_after(at + 1)? != Some('\\'))
    }

    /// Returns true if an element that ends at `end` is an object or a list, or is followed by what may follow an element.
    fn is_followed(&mut self, end: usize) -> Result<bool> {
        let next = self.reader.next_after(end)?;
        let nested = self.reader.rest().starts_with(['{', '[']);
        Ok(nested || next.is_none_or(|next| ",]{[/#".contains(next)))
    }
}

/// Returns the byte at which values that are no objects begin, if each is in a line of its own and they are all that follows an object and
/// its comma at the end of a text: they are elements of the array.
fn bare_after_object(text: &str) -> Option<usize> {
    let (mut rest, mut found) = (text.trim_end(), None);
    while let Some((before, line)) = rest.rsplit_once('\n') {
        let value = line.trim().trim_end_matches(',');
        let is_bare = value.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-');
        if !is_bare || serde_json::from_str::<IgnoredAny>(value).is_err() {
            break;
        }
        found = Some(before.len() + 1 + (line.len() - line.trim_start().len()));
        rest = before.trim_end();
    }
    found.filter(|_| rest.ends_with("},"))
}
