//! The records of a table, by RFC 4180.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::rc::Rc;

use serde_json::Value;

use super::json::ROW_BYTES;
use super::row::{Row, is_message, too_long};
use super::source::unreadable;
use super::suggest::named;
use super::text::TextReader;
use crate::error::{Refusal, Result, word};

/// Counts the bytes, quotes and lines that csv takes from a text.
struct Counted<'a> {
    reader: TextReader<'a>,
    counts: Rc<Counts>,
}

#[derive(Default)]
struct Counts {
    quotes: Cell<usize>,
    /// Number of bytes since the record before.
    record: Cell<usize>,
    lines: RefCell<Lines>,
}

/// Positions of line ends: csv does not count carriage returns.
#[derive(Default)]
struct Lines {
    offset: u64,
    /// True if the previous byte was a carriage return, or ended a line.
    after_return: bool,
    after_end: bool,
    /// For each line end ahead, the byte after it, and true if the line is empty.
    ends: VecDeque<(u64, bool)>,
    passed: usize,
}

impl Lines {
    fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.offset += 1;
            match byte {
                b'\n' if self.after_return => self.after_return = false,
                b'\n' | b'\r' => {
                    self.ends.push_back((self.offset, self.after_end));
                    self.after_end = true;
                    self.after_return = *byte == b'\r';
                    continue;
                }
                _ => (self.after_return, self.after_end) = (false, false),
            }
        }
    }

    /// Returns the line of the record that begins at this byte, or after empty lines there.
    fn line_of(&mut self, byte: u64) -> usize {
        let before = |(end, empty): &(u64, bool), passed: bool| *end <= byte || passed && *empty;
        while self.ends.front().is_some_and(|end| before(end, true)) {
            self.ends.pop_front();
            self.passed += 1;
        }
        self.passed + 1
    }
}

impl Read for Counted<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buf)?;
        let read = buf.get(..count).unwrap_or_default();
        self.counts.quotes.update(|quotes| quotes + read.iter().filter(|byte| **byte == b'"').count());
        self.counts.lines.borrow_mut().take(read);
        self.counts.record.update(|bytes| bytes + count);
        if self.counts.record.get() > ROW_BYTES {
            let found = format!("{} or more; a quote may not be closed", too_long());
            let refusal = Refusal::new(word!("data.row")).expected("a record of a table").found(found);
            return Err(io::Error::other(crate::error::Error::from(refusal)));
        }
        Ok(count)
    }
}

/// The records of a table.
pub(super) struct Table<'a> {
    records: csv::StringRecordsIntoIter<Counted<'a>>,
    counts: Rc<Counts>,
    names: Option<Vec<String>>,
    /// The record that was read ahead; if it is the last one, its last field may be the rest of the file.
    before: Option<csv::StringRecord>,
    ended: bool,
}

impl<'a> Table<'a> {
    pub fn new(reader: TextReader<'a>, delimiter: u8) -> Self {
        let counts = Rc::new(Counts::default());
        let records = table_reader(Counted { reader, counts: Rc::clone(&counts) }, delimiter).into_records();
        Self { records, counts, names: None, before: None, ended: false }
    }

    fn record(&mut self, file: &str) -> Result<Option<csv::StringRecord>> {
        self.counts.record.set(0);
        self.records.next().transpose().map_err(|error| {
            let reason = error.to_string();
            match error.into_kind() {
                csv::ErrorKind::Io(error) => unreadable(error, file),
                _ => Refusal::new(word!("data.row")).of(file).expected("records of a table").found(reason).into(),
            }
        })
    }

    pub fn next(&mut self, file: &str) -> Result<Option<(usize, Row)>> {
        let fault = |fault: String| Ok(Some((1, Err(fault))));
        if self.ended {
            return Ok(None);
        }
        if self.names.is_none() {
            let first = self.record(file)?;
            let names = if first.as_ref().is_some_and(is_separator) { self.record(file)? } else { first };
            let Some(names) = names else {
                self.ended = true;
                return fault("no first line of names".to_owned());
            };
            let names: Vec<String> = names.iter().map(|name| name.trim().to_owned()).collect();
            let twice = names.iter().enumerate().find(|(at, name)| names.iter().take(*at).any(|other| other == *name));
            if let Some((_, name)) = twice {
                self.ended = true;
                return fault(format!("two columns with the name {}", named(name)));
            }
            self.names = Some(names);
            self.before = self.record(file)?;
        }
        let Some(record) = self.before.take() else { return Ok(None) };
        self.before = self.record(file)?;
        let (names, last) = (self.names.as_deref().unwrap_or_default(), self.before.is_none());
        let line = record.position().map_or(1, |position| self.counts.lines.borrow_mut().line_of(position.byte()));
        // Escaped and enclosing quotes come in pairs.
        let unclosed = last && self.counts.quotes.get() % 2 == 1 && record.iter().next_back().is_some_and(|field| field.contains('\n'));
        let row = if unclosed {
            Err("a quote that is not closed".to_owned())
        } else if record.len() == names.len() {
            Ok(names.iter().zip(&record).map(|(name, field)| (name.clone(), cell(name, field))).collect())
        } else {
            let fields = if record.len() == 1 { "field" } else { "fields" };
            Err(format!("{} {fields}, where the first line has {}", record.len(), names.len()))
        };
        Ok(Some((line, row)))
    }
}

/// Returns true for the line `sep=;` of spreadsheets, which only names the separator by which it was split here.
pub(super) fn is_separator(record: &csv::StringRecord) -> bool {
    record.iter().eq(["sep=", ""])
}

/// Returns a reader of records with any number of fields, separated by `delimiter`.
pub(super) fn table_reader<R: Read>(reader: R, delimiter: u8) -> csv::Reader<R> {
    csv::ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(reader)
}

/// Columns whose fields are lists or objects, written in JSON.
const STRUCTURED: [&str; 12] = [
    "messages",
    "conversations",
    "tools",
    "documents",
    "chat_template_kwargs",
    "history",
    "input_ids",
    "labels",
    "assistant_masks",
    "attention_mask",
    "chosen",
    "rejected",
];

/// Returns the value of a field: a text, except for structured columns, and for lists of messages in any column.
fn cell(name: &str, field: &str) -> Value {
    let read = if field.starts_with(['[', '{']) { serde_json::from_str(field).ok() } else { None };
    let structured = |value: &Value| {
        let messages = value.as_array().is_some_and(|items| !items.is_empty() && items.iter().all(is_message));
        messages || STRUCTURED.contains(&name)
    };
    read.filter(structured).unwrap_or_else(|| Value::from(field))
}
