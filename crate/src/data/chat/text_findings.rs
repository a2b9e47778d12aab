//! Findings about the texts of data, with the rows in which they occur first.

use std::collections::BTreeMap;

use crate::data::read::{NAMED_ROWS, RowPlace};
use crate::error::Word;
use crate::tokenizer::Findings;

/// Findings about the texts of all rows, with the first rows of each code.
#[derive(Debug, Clone, Default)]
pub(crate) struct TextFindings {
    findings: Findings,
    rows: BTreeMap<&'static str, Vec<RowPlace>>,
}

impl TextFindings {
    /// Adds what was found in a row, or in a piece of a stream, which has no place.
    pub fn add(&mut self, findings: &Findings, place: Option<RowPlace>) {
        for (word, ..) in findings.reported() {
            let rows = self.rows.entry(word.text()).or_default();
            if rows.len() < NAMED_ROWS {
                rows.extend(place);
            }
        }
        self.findings.extend(findings);
    }

    /// Returns code, number of occurrences, first rows and sentence of each kind that occurred.
    pub fn reported(&self) -> impl Iterator<Item = (Word, usize, Vec<RowPlace>, String)> {
        let rows = |word: Word| self.rows.get(word.text()).cloned().unwrap_or_default();
        self.findings
            .reported()
            .into_iter()
            .map(move |(word, count, message)| (word, count, rows(word), message))
    }
}
