//! Notes on rows that are read in spite of a fault.

use crate::error::{Refusal, Word, word};

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
    /// Returns the warning's code and message.
    pub fn warning(&self) -> (Word, String) {
        let told = |word: Word, values| (word, Refusal::filled(word, values));
        let (word, told) = match self {
            Self::Quotes => told(word!("data.quotes"), ["", "", ""]),
            Self::Joined => told(word!("data.quotes"), ["joined", "", ""]),
            Self::Between(found) => told(word!("data.json"), ["", "", found]),
        };
        (word, told.to_string())
    }
}
