//! Notes on rows that are read in spite of a fault.

use crate::error::{Word, word};

/// A fault that costs no row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Note {
    /// Quotes that RFC 4180 does not have: the line is a row.
    Quotes,
    /// A quoted field with whole lines that would be rows by themselves.
    Joined,
    /// What was found between the rows of a JSON array.
    Between(&'static str),
}

impl Note {
    /// Returns the warning's code and message.
    pub fn warning(&self) -> (Word, String) {
        match self {
            Self::Quotes => (
                word!("data.quotes"),
                "quotes are not those of a table (text after a closing quote, a quote that is not closed, a backslash before a quote): \
                 each of these lines is read as a row, as it is written, with its quotes"
                    .to_owned(),
            ),
            Self::Joined => (
                word!("data.quotes"),
                "a quote opens a field that contains whole lines, each with as many fields as a row: they are read as one row, as the \
                 quotes have it; if the quote is a mistake, take it out"
                    .to_owned(),
            ),
            Self::Between(found) => (word!("data.json"), format!("the rows are read in spite of a fault between them; the first: {found}")),
        }
    }
}
