//! Where a row is.

use serde::Serialize;

use crate::config::Form;

/// A row of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RowPlace {
    /// Index of the file in the report.
    pub file: usize,
    /// Line at which the row begins, from 1.
    pub line: usize,
    /// Its number among the rows of the file, from 1.
    pub row: usize,
}

impl RowPlace {
    /// The word and the number by which people find the row in a file of this form: JSON may have many on a line.
    pub fn told(self, form: Form) -> (&'static str, usize) {
        if form == Form::Json { ("row", self.row) } else { ("line", self.line) }
    }

    /// The same of a fault, which an editor shows by its line.
    pub(super) fn of_fault(self, form: Form) -> String {
        let line = format!("line {}", self.line);
        if form == Form::Json { format!("row {} ({line})", self.row) } else { line }
    }
}
