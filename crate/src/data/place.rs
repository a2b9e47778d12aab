//! The place of a row in its file.

use serde::Serialize;

use crate::config::Form;

/// Number of rows that a warning names.
pub(super) const NAMED_ROWS: usize = 5;

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
        if form == Form::Json {
            ("row", self.row)
        } else {
            ("line", self.line)
        }
    }

    /// Describes the place of a fault, always with the line, which an editor shows.
    pub(super) fn of_fault(self, form: Form) -> String {
        let line = format!("line {}", self.line);
        if form == Form::Json {
            format!("row {} ({line})", self.row)
        } else {
            line
        }
    }
}
