//! The rows of a file of each form, with the line at which each begins.

use super::array::Array;
use super::form::Found;
use super::gzip::Trailing;
use super::json::{Outline, ROW_BYTES, outline};
use super::note::Note;
use super::row::{Row, parsed, too_long};
use super::source::DataSource;
use super::suggest::named;
use super::table::Table;
use super::text::TextReader;
use crate::config::Form;
use crate::error::{Refusal, Result, shown, word};

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
    trailing: Trailing,
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

    /// Returns what will be known of the file's end.
    pub fn trailing(&self) -> Trailing {
        self.trailing.clone()
    }

    /// Returns the message of the warning about keys next to the rows, if there are any.
    pub fn unread(&self) -> Option<String> {
        let keys: Vec<String> = self
            .unread
            .iter()
            .take(UNREAD_KEYS)
            .map(|key| named(key))
            .collect();
        let more = self.unread.len() - keys.len();
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let told = Refusal::filled(
            word!("data.columns.unused"),
            [&shown(self.name), &format!("{}{more}", keys.join(", ")), ""],
        );
        (!keys.is_empty()).then(|| told.to_string())
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
            let Some(row) = self.read()? else {
                return Ok(None);
            };
            if let Some(before) = self.before.as_mut().and_then(|before| before.replace(row)) {
                return Ok(Some(before));
            }
        }
    }

    /// Returns the notes on the rows so far that were not returned before, each with its line and the number of its row.
    pub fn notes(&mut self) -> Vec<(usize, usize, Note)> {
        std::mem::take(&mut self.notes)
    }

    fn read(&mut self) -> Result<Option<(usize, Row)>> {
        let mut notes = Vec::new();
        let row = self.read_with(&mut notes)?;
        self.count += 1;
        self.notes.extend(
            notes
                .into_iter()
                .map(|(line, note)| (line, self.count, note)),
        );
        Ok(row)
    }

    fn read_with(&mut self, notes: &mut Vec<(usize, Note)>) -> Result<Option<(usize, Row)>> {
        Ok(match &mut self.kind {
            Kind::Lines(reader) => next_line(reader)?,
            Kind::Array(array) => {
                let row = array.next()?;
                notes.append(&mut array.notes);
                row
            }
            Kind::One(reader) => {
                let line = reader.line();
                let row = one(reader)?;
                self.kind = Kind::Done;
                Some((line, row))
            }
            Kind::Table(table) => {
                let row = table.next()?;
                notes.append(&mut table.notes);
                row
            }
            Kind::Done => None,
        })
    }
}

fn next_line(reader: &mut TextReader<'_>) -> Result<Option<(usize, Row)>> {
    let mut line = String::new();
    loop {
        let number = reader.line();
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
