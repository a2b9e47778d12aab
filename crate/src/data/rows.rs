//! The rows of a file of each form, with the line at which each begins.

use serde::de::IgnoredAny;

use super::form::Found;
use super::gzip::Trailing;
use super::json::{self, Outline, ROW_BYTES, outline};
use super::row::{self, Row, object, parsed, too_long};
use super::source::DataSource;
use super::suggest::named;
use super::table::Table;
use super::text::TextReader;
use crate::config::Form;
use crate::error::{Result, shown};

/// Number of rows that are read in one go, before other work runs.
pub(super) const ROWS_AT_ONCE: usize = 64;
/// Maximum number of keys next to the rows that a warning names.
const UNREAD_KEYS: usize = 12;

/// The rows of a file, from first to last. An unreadable part is returned as the row's fault, which is the last row if the rest of the file
/// has no meaning after it.
pub(super) struct Rows<'a> {
    name: &'a str,
    kind: Kind<'a>,
    /// Holds back one row of a partial file, whose last row is left out.
    before: Option<Option<(usize, Row)>>,
    trailing: Trailing,
    /// Keys next to the rows in a file that is one object.
    unread: Vec<String>,
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
    /// Opens the rows of a file of a [`Found`] form. For a `partial` file, the beginning of a longer one, the last row is left out.
    pub fn open(source: &'a dyn DataSource, found: &Found, partial: bool) -> Result<Self> {
        let mut reader = TextReader::open(source, partial)?;
        let (trailing, mut unread) = (reader.trailing(), Vec::new());
        let kind = match found.form {
            Form::Jsonl => Kind::Lines(reader),
            Form::Json if reader.skip_blank()? == Some(b'[') => Kind::Array { reader, begun: false, inside: false },
            Form::Json => match outline(&mut TextReader::open(source, partial)?, partial)? {
                Some(Outline::Array { at, other }) => {
                    unread = other;
                    reader.skip_to(at)?;
                    Kind::Array { reader, begun: false, inside: true }
                }
                // Includes a text that is not an object: its fault is that of the row.
                Some(Outline::Row) | None => Kind::One(reader),
            },
            Form::Csv | Form::Tsv => Kind::Table(Box::new(Table::new(reader, found.delimiter))),
            Form::Text | Form::Tokens => Kind::Done,
        };
        Ok(Self { name: source.name(), kind, before: partial.then_some(None), trailing, unread })
    }

    /// Returns what will be known of the file's end.
    pub fn trailing(&self) -> Trailing {
        self.trailing.clone()
    }

    /// Returns the message of the warning about keys next to the rows, if there are any.
    pub fn unread(&self) -> Option<String> {
        let keys: Vec<String> = self.unread.iter().take(UNREAD_KEYS).map(|key| named(key)).collect();
        let more = self.unread.len() - keys.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let message = format!("{}: next to the rows nothing reads {}{more}", shown(self.name), keys.join(", "));
        (!keys.is_empty()).then_some(message)
    }

    /// Returns the next row and its line; `None` at the end.
    ///
    /// # Errors
    /// Errors of the file and its encoding.
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
            return Ok(Some((number, parsed(&line, number))));
        }
    }
}

/// Reads a file that is a single row.
fn one(reader: &mut TextReader<'_>) -> Result<Row> {
    let mut text = String::new();
    loop {
        let more = reader.fill()?;
        if more.is_empty() {
            return Ok(parsed(&text, 1));
        }
        if text.len() + more.len() > ROW_BYTES {
            return Ok(Err(too_long()));
        }
        text.push_str(more);
        let taken = more.len();
        reader.take(taken);
    }
}

/// Returns the next row of an array, and true if others may follow.
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
        (None, _) => return fault(reader, "the end of the file within the array"),
        _ => return fault(reader, "neither a comma nor the end of the array"),
    }
    let line = reader.line();
    Ok(match json::value(reader)? {
        json::Value::Whole(text) => {
            let row = row::value(&text, line);
            // After invalid JSON the rest has no meaning.
            let goes_on = row.is_ok() || serde_json::from_str::<IgnoredAny>(&text).is_ok();
            (Some((line, row.and_then(object))), goes_on)
        }
        json::Value::Cut(text) if text.is_empty() => return fault(reader, "the end of the file in place of an object"),
        json::Value::Cut(text) => (Some((line, parsed(&text, line))), false),
        json::Value::TooLong => (Some((line, Err(too_long()))), true),
    })
}

/// Checks that nothing follows the rows, except for the rest of the object that they are `inside` of.
fn end_of_array(reader: &mut TextReader<'_>, inside: bool) -> Result<(Option<(usize, Row)>, bool)> {
    reader.take(1);
    Ok(match reader.skip_blank()? {
        Some(_) if inside => (None, false),
        None => (None, false),
        Some(_) => (Some((reader.line(), Err("something after the end of the array".to_owned()))), false),
    })
}
