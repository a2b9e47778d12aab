//! Splits a table into the fields of its rows by RFC 4180, which calls a row a record, as Python's csv reads them with strict=True.

use std::collections::VecDeque;

use super::lines::{Line, Lines};
use super::note::Note;
use super::row::{ROW_BYTES, too_long};
use super::text::TextReader;
use crate::error::Result;

/// Number of lines after which a row with too many fields is given up: its quote is not closed.
const LINES: usize = 8;
/// Faults of quotes.
const UNCLOSED: &str = "a quote that is not closed";
const AFTER_QUOTE: &str = "text after the quote that closes a field";

/// The fields of a row, or its fault.
pub(super) type FieldsOrFault = Result<Vec<String>, String>;

/// The fields of a row, or its fault, and the line at which it begins.
pub(super) struct TableRow {
    pub line: usize,
    /// Line after its last one.
    pub end: usize,
    pub fields: FieldsOrFault,
    pub note: Option<Note>,
}

/// Reads the rows of a table.
pub(super) struct TableRows<'a> {
    lines: Lines<'a>,
    delimiter: char,
    /// True if the text is the beginning of a longer one, which may end within a row.
    partial: bool,
    /// Lines that were read ahead, and the number of the first one.
    ahead: VecDeque<Line>,
    line: usize,
    /// Last line of those that a faulty quote took in, and true if not all of them could be rows.
    doubtful: (usize, bool),
}

#[derive(Clone, Copy, Default, PartialEq)]
enum State {
    #[default]
    Start,
    Plain,
    Quoted,
    /// After a quote in a quoted field.
    Closing,
}

/// The strict reading of a row.
#[derive(Default)]
struct Strict {
    fields: Vec<String>,
    field: String,
    state: State,
}

impl Strict {
    /// Takes a line with its end. Returns true if the row ends with it, and `None` for text after a closing quote.
    fn take(&mut self, line: &str, delimiter: char) -> Option<bool> {
        for c in line.chars() {
            match (self.state, c) {
                (State::Start | State::Closing, '"') => {
                    if self.state == State::Closing {
                        self.field.push(c);
                    }
                    self.state = State::Quoted;
                }
                (State::Quoted, '"') => self.state = State::Closing,
                (State::Quoted, _) => self.field.push(c),
                (_, '\r' | '\n') => break,
                (_, c) if c == delimiter => {
                    self.fields.push(std::mem::take(&mut self.field));
                    self.state = State::Start;
                }
                (State::Closing, _) => return None,
                (State::Start | State::Plain, _) => {
                    self.field.push(c);
                    self.state = State::Plain;
                }
            }
        }
        let ends = self.state != State::Quoted;
        if ends {
            self.fields.push(std::mem::take(&mut self.field));
        }
        Some(ends)
    }
}

impl<'a> TableRows<'a> {
    pub fn new(reader: TextReader<'a>, delimiter: u8, partial: bool) -> Self {
        Self {
            lines: Lines(reader),
            delimiter: char::from(delimiter),
            partial,
            ahead: VecDeque::new(),
            line: 1,
            doubtful: (0, false),
        }
    }

    /// Returns the line of this index among those read ahead, after reading it if necessary.
    fn ahead(&mut self, at: usize) -> Result<Option<&Line>> {
        if at == self.ahead.len() {
            self.ahead.extend(self.lines.next()?);
        }
        Ok(self.ahead.get(at))
    }

    fn drop_lines(&mut self, count: usize) {
        self.ahead.drain(..count.min(self.ahead.len()));
        self.line += count;
    }

    /// Returns the next row of a table with `width` columns; `None` for its first row, and at the end.
    ///
    /// Where quotes break the rules, or close so late that the number of fields is wrong, and each line that they take in has `width` fields
    /// without regard to quotes, the lines are rows as they are written. Otherwise the first of these lines is faulty, and reading goes
    /// on with the next one.
    pub fn next(&mut self, width: Option<usize>) -> Result<Option<TableRow>> {
        while self
            .ahead(0)?
            .is_some_and(|line| !line.long && line.body().is_empty())
        {
            self.drop_lines(1);
        }
        let (line, delimiter) = (self.line, self.delimiter);
        let Some(first) = self.ahead(0)? else {
            return Ok(None);
        };
        if first.long {
            return Ok(Some(self.row(1, Err(too_long()), None)));
        }
        let (expected, quoted) = (
            width.unwrap_or_else(|| first.count(delimiter)),
            first.text.contains('"'),
        );
        let (count, fault, fields) = self.strict(width)?;
        let is_row = |line: &Line| {
            !line.long && (line.body().is_empty() || line.count(delimiter) == expected)
        };
        let alike = self.ahead.iter().take(count).all(is_row);
        let wrong = width.is_some_and(|width| fields.len() != width);
        let doubtful = line <= self.doubtful.0;
        if fault.is_none() && !(count > 1 && alike && wrong) {
            let joined = (count > 1 && alike).then_some(Note::Joined);
            let quotes = (doubtful && (quoted || self.doubtful.1)).then_some(Note::Quotes);
            let note = joined.or(quotes);
            return Ok(Some(self.row(count, Ok(fields), note)));
        }
        if self.partial && !alike && count == self.ahead.len() && self.ahead(count)?.is_none() {
            return Ok(Some(self.row(count, Err(UNCLOSED.to_owned()), None)));
        }
        self.doubtful = (
            self.doubtful.0.max(line + count - 1),
            !alike || doubtful && self.doubtful.1,
        );
        let plain = self.ahead.front().map_or_else(Vec::new, |line| {
            line.body().split(delimiter).map(str::to_owned).collect()
        });
        Ok(Some(match fault {
            Some(fault) if !alike => self.row(1, Err(fault.to_owned()), None),
            _ => self.row(1, Ok(plain), Some(Note::Quotes)),
        }))
    }

    /// Reads a row strictly. Returns the number of its lines, its fault, and its fields.
    fn strict(
        &mut self,
        width: Option<usize>,
    ) -> Result<(usize, Option<&'static str>, Vec<String>)> {
        let (mut strict, mut count, mut bytes) = (Strict::default(), 0, 0);
        let delimiter = self.delimiter;
        let fault = loop {
            let Some(line) = self.ahead(count)? else {
                break Some(UNCLOSED);
            };
            count += 1;
            bytes += line.text.len();
            if line.long || bytes > ROW_BYTES {
                break Some(UNCLOSED);
            }
            match strict.take(&line.text, delimiter) {
                Some(true) => break None,
                Some(false)
                    if count > LINES && width.is_some_and(|width| strict.fields.len() > width) =>
                {
                    break Some(UNCLOSED);
                }
                Some(false) => {}
                None => break Some(AFTER_QUOTE),
            }
        };
        Ok((count, fault, strict.fields))
    }

    /// Makes a row of the first `count` lines.
    fn row(&mut self, count: usize, fields: FieldsOrFault, note: Option<Note>) -> TableRow {
        let line = self.line;
        self.drop_lines(count);
        TableRow {
            line,
            end: self.line,
            fields,
            note,
        }
    }
}

/// Returns the first rows of a text, or their faults; the first of them names the columns.
pub(super) fn first_rows(
    text: &str,
    delimiter: u8,
    whole: bool,
    most: usize,
) -> Vec<FieldsOrFault> {
    let mut rows = TableRows::new(TextReader::of_text(text.to_owned()), delimiter, !whole);
    let (mut found, mut width) = (Vec::new(), None);
    while found.len() < most
        && let Ok(Some(row)) = rows.next(width)
    {
        let names = row.fields.iter().find(|fields| !is_separator(fields));
        width = width.or(names.map(Vec::len));
        found.push(row.fields);
    }
    found
}

/// Returns true for the line `sep=;` of spreadsheets, which only names the separator by which it was split here.
pub(super) fn is_separator(fields: &[String]) -> bool {
    fields == ["sep=", ""]
}
