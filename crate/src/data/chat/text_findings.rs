//! Findings about the texts of data, with the rows in which they occur first.

use std::collections::BTreeMap;

use crate::data::read::{DataWarning, NAMED_ROWS, RowPlace};
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

    /// The warning of each kind that occurred.
    pub fn reported(&self) -> impl Iterator<Item = DataWarning> {
        let kinds = self.findings.reported().into_iter();
        kinds.map(|(word, count, message)| {
            let rows = self.rows.get(word.text()).cloned().unwrap_or_default();
            DataWarning::new(word, count, rows, message)
        })
    }
}
