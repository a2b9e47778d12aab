//! The rows of a JSON array. A faulty one costs no other: reading continues at the next element.

use serde::de::IgnoredAny;

use super::boundary::{Keys, first_key};
use super::element::{Element, End};
use super::json::ROW_BYTES;
use super::lookahead::Lookahead;
use super::note::Note;
use super::row::{self, Row, object, too_long};
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
    lookahead: Lookahead<'a>,
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
        let (keys, notes) = (Keys::default(), Vec::new());
        Self {
            lookahead: Lookahead::new(reader),
            inside,
            partial,
            state: State::Begin,
            keys,
            notes,
        }
    }

    fn note(&mut self, found: &'static str) {
        self.notes.push((self.lookahead.line, Note::Between(found)));
    }

    /// Skips white space and comments. Returns the next byte; `None` at the end.
    fn skip(&mut self) -> Result<Option<u8>> {
        loop {
            let rest = self.lookahead.rest();
            let blank = rest.len() - rest.trim_start().len();
            self.lookahead.take(blank);
            if matches!(self.lookahead.rest().as_bytes(), [] | [b'/']) && self.lookahead.more()? {
                continue;
            }
            let end = match self.lookahead.rest().as_bytes() {
                [b'#', ..] | [b'/', b'/', ..] => "\n",
                [b'/', b'*', ..] => "*/",
                bytes => return Ok(bytes.first().copied()),
            };
            self.note("a comment, which JSON does not have");
            let comment = loop {
                match self
                    .lookahead
                    .rest()
                    .get(2..)
                    .and_then(|rest| rest.find(end))
                {
                    Some(at) => break 2 + at + end.len(),
                    None if !self.lookahead.more()? => break self.lookahead.rest().len(),
                    None => {}
                }
            };
            self.lookahead.take(comment);
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
                    self.lookahead.take(1);
                    self.state = State::Opened;
                }
                (State::Opened | State::Row | State::Comma, Some(b']')) => {
                    if self.state == State::Row {
                        self.note("a comma without a row after it");
                    }
                    self.lookahead.take(1);
                    self.close()?;
                }
                (State::Comma, Some(b',')) => {
                    self.lookahead.take(1);
                    self.state = State::Row;
                }
                (State::Opened | State::Row, Some(b',')) => {
                    self.note("a comma without a row before it");
                    self.lookahead.take(1);
                    self.state = State::Row;
                }
                (State::Comma, Some(b'}')) => {
                    self.note("a bracket too many");
                    self.lookahead.take(1);
                }
                (State::Closed, Some(next @ (b',' | b'{'))) => {
                    self.note("something after the end of the array");
                    self.lookahead.take(usize::from(next == b','));
                    self.state = if next == b',' {
                        State::Closed
                    } else {
                        State::Row
                    };
                }
                (State::Begin | State::Closed, Some(_)) => {
                    self.note("something after the end of the array");
                    let row = self.keys.find(&mut self.lookahead, 0, true, false)?;
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
            Some(b'}') => self.lookahead.take(1),
            Some(b',') => {
                while self
                    .lookahead
                    .rest()
                    .get(1..)
                    .unwrap_or_default()
                    .trim_start()
                    .is_empty()
                    && self.lookahead.more()?
                {}
                if self
                    .lookahead
                    .rest()
                    .get(1..)
                    .unwrap_or_default()
                    .trim_start()
                    .starts_with('"')
                {
                    self.state = State::Ended;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Continues at the row that begins at `row`, or ends.
    fn go_to(&mut self, row: Option<usize>) {
        self.lookahead
            .take(row.unwrap_or(self.lookahead.rest().len()));
        self.state = if row.is_some() {
            State::Row
        } else {
            State::Ended
        };
    }

    /// Reads the element that begins here.
    fn element(&mut self) -> Result<(usize, Row)> {
        let (line, mut element, mut at, mut long) =
            (self.lookahead.line, Element::default(), 0, false);
        let end = loop {
            let bytes = self
                .lookahead
                .rest()
                .as_bytes()
                .get(at..)
                .unwrap_or_default();
            let (count, end) = (
                bytes.len(),
                bytes
                    .iter()
                    .zip(at..)
                    .find_map(|(byte, at)| element.take(*byte, at)),
            );
            if end.is_some() {
                break end;
            }
            at += count;
            if at > ROW_BYTES {
                long = true;
                self.lookahead.take(at);
                (at, element.last_token) = (0, 0);
            }
            if !self.lookahead.more()? {
                break None;
            }
        };
        let whole = match end {
            Some(End::Whole(end)) if self.is_followed(end)? => Some(end),
            _ => None,
        };
        let Some(end) = whole else {
            // A missing quote hides the rows after it, so that the next one is recognized by its first key.
            let own = first_key(self.lookahead.rest());
            self.keys.learn(own);
            let next = match end {
                Some(End::Next(at)) if self.begins_object(at)? => Some(at),
                _ => {
                    let any = !self.lookahead.rest().starts_with(['{', '[']);
                    self.keys
                        .find(&mut self.lookahead, element.last_token, any, self.inside)?
                }
            };
            let text = self
                .lookahead
                .rest()
                .get(..next.unwrap_or(self.lookahead.rest().len()))
                .unwrap_or_default();
            let next = next.map(|next| bare_after_object(text).unwrap_or(next));
            let text = text.get(..next.unwrap_or(text.len())).unwrap_or_default();
            let text = text.trim_end().trim_end_matches(',');
            let row = if long {
                Err(too_long())
            } else {
                row::value(text, line).and_then(object)
            };
            self.go_to(next);
            return Ok((line, row));
        };
        let text = self.lookahead.rest().get(..end).unwrap_or_default();
        let row = if long {
            Err(too_long())
        } else {
            row::value(text, line).and_then(object)
        };
        if row.is_ok() {
            let key = first_key(text);
            self.keys.learn(key);
        }
        self.lookahead.take(end);
        self.state = State::Comma;
        Ok((line, row))
    }

    /// Returns true unless the bracket at `at` is that of a text: an object does not begin with a backslash.
    fn begins_object(&mut self, at: usize) -> Result<bool> {
        let inside = |lookahead: &Lookahead<'a>| {
            lookahead
                .rest()
                .get(at + 1..)
                .unwrap_or_default()
                .trim_start()
                .chars()
                .next()
        };
        while inside(&self.lookahead).is_none() && self.lookahead.more()? {}
        Ok(inside(&self.lookahead) != Some('\\'))
    }

    /// Returns true if an element that ends at `end` is an object or a list, or is followed by what may follow an element.
    fn is_followed(&mut self, end: usize) -> Result<bool> {
        while self
            .lookahead
            .rest()
            .get(end..)
            .unwrap_or_default()
            .trim_start()
            .is_empty()
            && self.lookahead.more()?
        {}
        let nested = self.lookahead.rest().starts_with(['{', '[']);
        let next = self
            .lookahead
            .rest()
            .get(end..)
            .and_then(|rest| rest.trim_start().bytes().next());
        Ok(nested || next.is_none_or(|next| b",]{[/#".contains(&next)))
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
