//! The rows of a file of each form, with the line at which each begins.

use super::array::Array;
use super::form::Found;
use super::json::{Outline, outline};
use super::note::Note;
use super::report::{DataWarning, briefly};
use super::row::{ROW_BYTES, Row, parsed, too_long};
use super::seen::Seen;
use super::source::DataSource;
use super::suggest::named;
use super::table::Table;
use super::text::TextReader;
use crate::config::Form;
use crate::error::{Result, shown, word};

/// Number of rows that are read in one go, before other work runs.
pub(crate) const ROWS_AT_ONCE: usize = 64;
/// Maximum number of keys next to the rows that a warning names.
const UNREAD_KEYS: usize = 12;

/// The rows of a file, from first to last. An unreadable part is returned as the row's fault.
pub(crate) struct Rows<'a> {
    name: &'a str,
    kind: Kind<'a>,
    /// Holds back one row of a partial file, whose last row is left out.
    before: Option<Option<(usize, Row)>>,
    /// Tells, after the last row, if other bytes follow the end of a gzip file.
    pub trailing: Seen,
    /// Keys next to the rows in a file that is one object.
    unread: Vec<String>,
    /// Number of rows so far, those that are held back included.
    count: usize,
    notes: Vec<(usize, usize, Note)>,
}

enum Kind<'a> {
    Lines(TextReader<'a>),
    Array(Box<Array<'a>>),
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
            Form::Json if reader.skip_blank()? == Some(b'[') => {
                Kind::Array(Box::new(Array::new(reader, false, partial)))
            }
            Form::Json => match outline(&mut TextReader::open(source, partial)?)? {
                Some(Outline::Array { at, other, .. }) => {
                    unread = other;
                    reader.skip_to(at)?;
                    Kind::Array(Box::new(Array::new(reader, true, partial)))
                }
                // Includes a text that is not an object: its fault is that of the row.
                Some(Outline::Row) | None => Kind::One(reader),
            },
            Form::Csv | Form::Tsv => {
                Kind::Table(Box::new(Table::new(reader, found.delimiter, partial)))
            }
            Form::Text | Form::Tokens => Kind::Done,
        };
        Ok(Self {
            name: source.name(),
            kind,
            before: partial.then_some(None),
            trailing,
            unread,
            count: 0,
            notes: Vec::new(),
        })
    }

    /// The warning about keys next to the rows, if there are any.
    pub fn unread(&self) -> Option<DataWarning> {
        let keys = briefly(self.unread.iter().map(|key| named(key)), UNREAD_KEYS);
        let name = shown(self.name);
        let values = [name.as_str(), &keys, ""];
        let warning = || DataWarning::once(word!("data.columns.unused"), values);
        (!self.unread.is_empty()).then(warning)
    }

    /// Returns the next row and its line; `None` at the end.
    ///
    /// # Errors
    /// Errors of the file and its encoding.
    pub fn next(&mut self) -> Result<Option<(usize, Row)>> {
        if self.before.is_none() {
            return self.read();
        }
        while let Some(row) = self.read()? {
            let before = self.before.as_mut().and_then(|before| before.replace(row));
            if before.is_some() {
                return Ok(before);
            }
        }
        Ok(None)
    }

    /// Returns the notes on the rows so far that were not returned before, each with its line and the number of its row.
    pub fn notes(&mut self) -> Vec<(usize, usize, Note)> {
        std::mem::take(&mut self.notes)
    }

    fn read(&mut self) -> Result<Option<(usize, Row)>> {
        let (row, notes) = match &mut self.kind {
            Kind::Lines(reader) => (next_line(reader)?, Vec::new()),
            Kind::Array(array) => (array.next()?, std::mem::take(&mut array.notes)),
            Kind::Table(table) => (table.next()?, std::mem::take(&mut table.notes)),
            Kind::One(reader) => {
                let row = (reader.line, one(reader)?);
                self.kind = Kind::Done;
                (Some(row), Vec::new())
            }
            Kind::Done => (None, Vec::new()),
        };
        self.count += 1;
        let notes = notes.into_iter();
        self.notes
            .extend(notes.map(|(line, note)| (line, self.count, note)));
        Ok(row)
    }
}

fn next_line(reader: &mut TextReader<'_>) -> Result<Option<(usize, Row)>> {
    let mut line = String::new();
    loop {
        let number = reader.line;
        line.clear();
        let Some(length) = reader.read_line(&mut line, ROW_BYTES)? else {
            return Ok(None);
        };
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
    while reader.move_to(&mut text)? > 0 {
        if text.len() > ROW_BYTES {
            return Ok(Err(too_long()));
        }
    }
    Ok(parsed(&text, 1))
}
