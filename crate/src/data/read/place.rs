//! The place of a row in its file, by which its fault is found.

use serde::Serialize;

use crate::config::Form;
use crate::error::{Error, Refusal, shown, word};

/// Number of rows that a warning names.
pub(crate) const NAMED_ROWS: usize = 5;

/// A row of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RowPlace {
    /// Index of the file in the report.
    pub file: usize,
    /// Line at which the row begins, counted from 1.
    pub line: usize,
    /// Number of the row in its file, counted from 1.
    pub row: usize,
}

impl RowPlace {
    /// Returns the word and the number by which people find the row in a file of this form: JSON may have many rows on a line.
    pub fn in_form(self, form: Form) -> (&'static str, usize) {
        match form {
            Form::Json => ("row", self.row),
            _ => ("line", self.line),
        }
    }

    /// Describes the place of a fault, always with the line, which an editor shows.
    pub(crate) fn of_fault(self, form: Form) -> String {
        let line = format!("line {}", self.line);
        match form {
            Form::Json => format!("row {} ({line})", self.row),
            _ => line,
        }
    }
}

/// Adds the file and the place in it to the fault of a row.
pub(crate) fn placed(error: Error, file: &str, place: &str) -> Refusal {
    let refusal = match error {
        Error::Refused(mut list) if list.len() == 1 => list.remove(0),
        Error::Template { reason } => Refusal::new(word!("data.template"))
            .expected("a chat that the model's template takes")
            .hint(reason),
        other => Refusal::new(word!("data.row"))
            .expected("a row that can be tokenized")
            .because(other.to_string()),
    };
    let subject = match &refusal.subject {
        Some(subject) => format!("{place}, {subject}"),
        None => place.to_owned(),
    };
    // The name of the file has folders only if they tell it from another one.
    Refusal {
        artifact: shown(file),
        ..refusal
    }
    .subject(&subject)
}
