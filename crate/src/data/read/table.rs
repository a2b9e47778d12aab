//! The rows of a table: fields under the names in its first line.

use serde_json::Value;

use super::note::Note;
use super::row::{Row, is_message};
use super::suggest::named;
use super::table_rows::{TableRow, TableRows, is_separator};
use super::text::TextReader;
use crate::error::Result;

/// Words before the number of columns in the fault of a row that has more fields.
pub(crate) const FEWER_NAMES: &str = "where the first line has only";

/// The rows of a table.
pub(super) struct Table<'a> {
    rows: TableRows<'a>,
    names: Option<Vec<String>>,
    ended: bool,
    /// Notes on the rows, with their lines.
    pub notes: Vec<(usize, Note)>,
}

impl<'a> Table<'a> {
    /// Reads the rows of a table; if it is `partial`, it is the beginning of a longer one.
    pub fn new(reader: TextReader<'a>, delimiter: u8, partial: bool) -> Self {
        Self {
            rows: TableRows::new(reader, delimiter, partial),
            names: None,
            ended: false,
            notes: Vec::new(),
        }
    }

    fn row(&mut self) -> Result<Option<TableRow>> {
        let row = self.rows.next(self.names.as_ref().map(Vec::len))?;
        let note = |row: &TableRow| Some((row.line, row.note.clone()?));
        self.notes.extend(row.as_ref().and_then(note));
        Ok(row)
    }

    /// Reads the names of the columns.
    ///
    /// # Errors
    /// Errors of the file; within, the fault of the names.
    fn header(&mut self) -> Result<Result<Vec<String>, String>> {
        let is_mark =
            |first: &TableRow| matches!(&first.fields, Ok(fields) if is_separator(fields));
        let first = match self.row()? {
            Some(first) if is_mark(&first) => self.row()?,
            first => first,
        };
        let fields = first.map_or_else(
            || Err("no first line of names".to_owned()),
            |first| first.fields,
        );
        Ok(fields.and_then(|names| {
            let names: Vec<String> = names.iter().map(|name| name.trim().to_owned()).collect();
            match repeated(&names) {
                Some(name) => Err(format!("two columns with the name {}", named(name))),
                None => Ok(names),
            }
        }))
    }

    pub fn next(&mut self) -> Result<Option<(usize, Row)>> {
        if self.ended {
            return Ok(None);
        }
        if self.names.is_none() {
            match self.header()? {
                Ok(names) => self.names = Some(names),
                Err(fault) => {
                    self.ended = true;
                    return Ok(Some((1, Err(fault))));
                }
            }
        }
        let Some(TableRow {
            line, end, fields, ..
        }) = self.row()?
        else {
            return Ok(None);
        };
        let names = self.names.as_deref().unwrap_or_default();
        let row = fields.and_then(|fields| {
            if fields.len() == names.len() {
                return Ok(names
                    .iter()
                    .zip(&fields)
                    .map(|(name, field)| (name.clone(), cell(name, field)))
                    .collect());
            }
            let (count, s) = (fields.len(), if fields.len() == 1 { "" } else { "s" });
            let until = if end > line + 1 {
                format!(" up to line {}", end - 1)
            } else {
                String::new()
            };
            let where_first_has = if count > names.len() {
                FEWER_NAMES
            } else {
                "where the first line has"
            };
            Err(format!(
                "{count} field{s}{until}, {where_first_has} {}",
                names.len()
            ))
        });
        Ok(Some((line, row)))
    }
}

/// The first name that another one before it equals.
pub(super) fn repeated(names: &[String]) -> Option<&String> {
    let mut places = names.iter().enumerate();
    places.find_map(|(at, name)| names[..at].contains(name).then_some(name))
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
    let read = if field.starts_with(['[', '{']) {
        serde_json::from_str(field).ok()
    } else {
        None
    };
    let structured = |value: &Value| {
        let messages = value
            .as_array()
            .is_some_and(|items| !items.is_empty() && items.iter().all(is_message));
        messages || STRUCTURED.contains(&name)
    };
    read.filter(structured)
        .unwrap_or_else(|| Value::from(field))
}
