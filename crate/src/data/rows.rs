//! The rows of a file of each form, with the line at which each begins.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use serde_json::{Map, Value};

use super::form::Found;
use super::json::{self, Outline, ROW_BYTES, outline};
use super::source::{DataSource, unreadable};
use super::text::TextReader;
use crate::config::Form;
use crate::error::{Refusal, Result, shown, word};

/// A row, or why it cannot be read.
pub(super) type Row = std::result::Result<Map<String, Value>, String>;

/// The rows of a file, from first to last. What cannot be read is given as the row's fault; where the rest of the file has no meaning after it, it
/// is the last one.
pub(super) struct Rows<'a> {
    name: &'a str,
    kind: Kind<'a>,
    /// Holds back a row of a file that is cut, whose last one is left out.
    before: Option<Option<(usize, Row)>>,
}

enum Kind<'a> {
    Lines(TextReader<'a>),
    /// An array, which is the whole file or `inside` an object.
    Array {
        reader: TextReader<'a>,
        begun: bool,
        inside: bool,
    },
    One(TextReader<'a>),
    Table(Box<Table<'a>>),
    /// Nothing is left.
    Done,
}

impl<'a> Rows<'a> {
    /// The rows of a file of a form that was [`Found`]; of a `partial` one, the beginning of a longer file, all but the last.
    pub fn open(source: &'a dyn DataSource, found: &Found, partial: bool) -> Result<Self> {
        let mut reader = TextReader::open(source, partial)?;
        let kind = match found.form {
            Form::Jsonl => Kind::Lines(reader),
            Form::Json if reader.skip_blank()? == Some(b'[') => Kind::Array { reader, begun: false, inside: false },
            Form::Json => match outline(&mut TextReader::open(source, partial)?, partial)? {
                Some(Outline::Array(at)) => {
                    reader.skip_to(at)?;
                    Kind::Array { reader, begun: false, inside: true }
                }
                // Also what is no object: its fault is that of the row.
                Some(Outline::Row) | None => Kind::One(reader),
            },
            Form::Csv | Form::Tsv => Kind::Table(Box::new(Table::new(reader, found.delimiter))),
            Form::Text | Form::Tokens => Kind::Done,
        };
        Ok(Self { name: source.name(), kind, before: partial.then_some(None) })
    }

    /// The next row and its line; `None` at the end.
    ///
    /// # Errors
    /// Fails where the file or its encoding does.
    pub fn next(&mut self) -> Result<Option<(usize, Row)>> {
        if self.before.is_none() {
            return self.read();
        }
        loop {
            let Some(row) = self.read()? else { return Ok(None) };
            if let Some(before) = self.before.as_mut().and_then(|before| before.replace(row)) {
                return Ok(Some(before));
            }
        }
    }

    fn read(&mut self) -> Result<Option<(usize, Row)>> {
        match &mut self.kind {
            Kind::Lines(reader) => next_line(reader),
            Kind::Array { reader, begun, inside } => {
                let (row, goes_on) = next_item(reader, begun, *inside)?;
                if !goes_on {
                    self.kind = Kind::Done;
                }
                Ok(row)
            }
            Kind::One(reader) => {
                let line = reader.line();
                let row = one(reader)?;
                self.kind = Kind::Done;
                Ok(Some((line, row)))
            }
            Kind::Table(table) => table.next(self.name),
            Kind::Done => Ok(None),
        }
    }
}

fn not_json(error: &serde_json::Error) -> String {
    format!("not JSON: {}", shown(&error.to_string()))
}

fn too_long() -> String {
    format!("a row of more than {} MiB", ROW_BYTES >> 20)
}

fn object(value: Value) -> Row {
    match value {
        Value::Object(fields) => Ok(fields),
        other => Err(format!("expected an object, found {}", shown(&other.to_string()))),
    }
}

/// A row from its JSON.
fn parsed(text: &str) -> Row {
    serde_json::from_str(text).map_err(|error| not_json(&error)).and_then(object)
}

fn next_line(reader: &mut TextReader<'_>) -> Result<Option<(usize, Row)>> {
    let mut line = String::new();
    loop {
        let number = reader.line();
        line.clear();
        let Some(length) = reader.read_line(&mut line, ROW_BYTES)? else { return Ok(None) };
        if length > ROW_BYTES {
            return Ok(Some((number, Err(too_long()))));
        }
        if !line.trim().is_empty() {
            return Ok(Some((number, parsed(&line))));
        }
    }
}

/// All of a file that is a single row.
fn one(reader: &mut TextReader<'_>) -> Result<Row> {
    let mut text = String::new();
    loop {
        let more = reader.fill()?;
        if more.is_empty() {
            return Ok(parsed(&text));
        }
        if text.len() + more.len() > ROW_BYTES {
            return Ok(Err(too_long()));
        }
        text.push_str(more);
        let taken = more.len();
        reader.take(taken);
    }
}

/// The next row of an array, and whether there may be others after it.
fn next_item(reader: &mut TextReader<'_>, begun: &mut bool, inside: bool) -> Result<(Option<(usize, Row)>, bool)> {
    let next = reader.skip_blank()?;
    let fault = |reader: &TextReader<'_>, fault: &str| Ok((Some((reader.line(), Err(fault.to_owned()))), false));
    match (next, *begun) {
        (Some(b'['), false) => {
            reader.take(1);
            *begun = true;
            if reader.skip_blank()? == Some(b']') {
                return end_of_array(reader, inside);
            }
        }
        (Some(b','), true) => {
            reader.take(1);
            reader.skip_blank()?;
        }
        (Some(b']'), true) => return end_of_array(reader, inside),
        (None, _) => return fault(reader, "expected a comma or the end of the array, found the end of the file"),
        _ => return fault(reader, "expected a comma or the end of the array"),
    }
    let line = reader.line();
    Ok(match json::value(reader)? {
        json::Value::Whole(text) => {
            let row = serde_json::from_str(&text).map_err(|error| not_json(&error));
            // After what is no JSON, nothing has a meaning.
            let goes_on = row.is_ok();
            (Some((line, row.and_then(object))), goes_on)
        }
        json::Value::Cut(text) if text.is_empty() => return fault(reader, "expected an object, found the end of the file"),
        json::Value::Cut(text) => (Some((line, parsed(&text))), false),
        json::Value::TooLong => (Some((line, Err(too_long()))), true),
    })
}

/// After the rows nothing is expected, but the rest of the object that they are `inside` of.
fn end_of_array(reader: &mut TextReader<'_>, inside: bool) -> Result<(Option<(usize, Row)>, bool)> {
    reader.take(1);
    Ok(match reader.skip_blank()? {
        Some(_) if inside => (None, false),
        None => (None, false),
        Some(_) => (Some((reader.line(), Err("expected nothing after the array".to_owned()))), false),
    })
}

/// Counts what csv takes of a text.
struct Counted<'a> {
    reader: TextReader<'a>,
    counts: Rc<Counts>,
}

#[derive(Default)]
struct Counts {
    quotes: Cell<usize>,
    /// Bytes since the record before.
    record: Cell<usize>,
}

impl Read for Counted<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buf)?;
        let read = buf.get(..count).unwrap_or_default();
        self.counts.quotes.update(|quotes| quotes + read.iter().filter(|byte| **byte == b'"').count());
        self.counts.record.update(|bytes| bytes + count);
        if self.counts.record.get() > ROW_BYTES {
            let found = format!("{} or more; a quote may not be closed", too_long());
            let refusal = Refusal::new(word!("data.row")).expected("a record of a table").found(found);
            return Err(io::Error::other(crate::error::Error::from(refusal)));
        }
        Ok(count)
    }
}

/// Records of a table.
struct Table<'a> {
    records: csv::StringRecordsIntoIter<Counted<'a>>,
    counts: Rc<Counts>,
    names: Option<Vec<String>>,
    /// The record before, whose last field may be the rest of the file.
    before: Option<csv::StringRecord>,
    ended: bool,
}

impl<'a> Table<'a> {
    fn new(reader: TextReader<'a>, delimiter: u8) -> Self {
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

    fn next(&mut self, file: &str) -> Result<Option<(usize, Row)>> {
        let fault = |fault: String| Ok(Some((1, Err(fault))));
        if self.ended {
            return Ok(None);
        }
        if self.names.is_none() {
            let Some(names) = self.record(file)? else {
                self.ended = true;
                return fault("expected a first line of names".to_owned());
            };
            let names: Vec<String> = names.iter().map(|name| name.trim().to_owned()).collect();
            let twice = names.iter().enumerate().find(|(at, name)| names.iter().take(*at).any(|other| other == *name));
            if let Some((_, name)) = twice {
                self.ended = true;
                return fault(format!("expected distinct names of columns, found {} twice", shown(name)));
            }
            self.names = Some(names);
            self.before = self.record(file)?;
        }
        let Some(record) = self.before.take() else { return Ok(None) };
        self.before = self.record(file)?;
        let (names, last) = (self.names.as_deref().unwrap_or_default(), self.before.is_none());
        let line = record.position().map_or(1, |position| position.line() as usize);
        // Quotes that are written come in pairs.
        let unclosed = last && self.counts.quotes.get() % 2 == 1 && record.iter().next_back().is_some_and(|field| field.contains('\n'));
        let row = if unclosed {
            Err("a quote that is not closed".to_owned())
        } else if record.len() == names.len() {
            Ok(names.iter().zip(&record).map(|(name, field)| (name.clone(), cell(field))).collect())
        } else {
            Err(format!("expected {} fields as in the first line, found {}", names.len(), record.len()))
        };
        Ok(Some((line, row)))
    }
}

/// Reads records of any number of fields between `delimiter`.
pub(super) fn table_reader<R: Read>(reader: R, delimiter: u8) -> csv::Reader<R> {
    csv::ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(reader)
}

/// A field of a table: a text, but for lists and objects written in JSON, as messages are.
fn cell(field: &str) -> Value {
    let structured = field.starts_with("[{") || field.starts_with("[\"") || field.starts_with("{\"");
    let read = if structured { serde_json::from_str(field).ok() } else { None };
    read.unwrap_or_else(|| Value::from(field))
}
