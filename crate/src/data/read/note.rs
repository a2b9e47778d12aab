//! Notes on rows that are read in spite of a fault.

use super::place::RowPlace;
use super::refused::told;
use super::report::DataWarning;
use crate::error::word;

/// A fault that costs no row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Note {
    /// Quotes that RFC 4180 does not have: the line is a row.
    Quotes,
    /// A quoted field with whole lines that would be rows by themselves.
    Joined,
    /// Finding between the rows of a JSON array.
    Between(&'static str),
}

impl Note {
    /// The warning about the row at a place.
    pub fn warning(&self, place: RowPlace) -> DataWarning {
        let (word, values) = match self {
            Self::Quotes => (word!("data.quotes"), ["", "", ""]),
            Self::Joined => (word!("data.quotes"), ["joined", "", ""]),
            Self::Between(found) => (word!("data.json"), ["", "", *found]),
        };
        DataWarning::of_row(word, place, told(word, values))
    }
}
