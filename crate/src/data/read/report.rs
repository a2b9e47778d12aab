//! Reports on files as they were read, and warnings about data that were not refused.

use std::collections::BTreeMap;

use serde::Serialize;

use super::place::{NAMED_ROWS, RowPlace};
use super::refused::told;
use crate::config::Form;
use crate::error::{Word, shown, word};

/// Report on a file as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileReport {
    /// Name of the file.
    pub name: String,
    /// Form that was detected or given.
    pub form: Form,
    /// Number of rows; null for a stream of text or ids.
    pub rows: Option<usize>,
}

/// Summary of a file, as far as it is known without a tokenizer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileSummary {
    /// Name of the file.
    pub name: String,
    /// Form that was detected or given.
    pub form: Form,
    /// Number of rows; null for a stream of text or ids.
    pub rows: Option<usize>,
    /// Number of rows of each kind: chat, completion, text, tokens, and faulty.
    pub shapes: BTreeMap<&'static str, usize>,
    /// Keys of the rows, in the order of their first occurrence; at most 50.
    pub columns: Vec<String>,
    /// Number of characters of a text or of rows, or of ids of token ids.
    pub characters: usize,
    /// Warnings about the file itself.
    pub warnings: Vec<DataWarning>,
}

/// Warning about data that was not refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DataWarning {
    /// Stable dotted code.
    pub code: &'static str,
    /// Number of occurrences.
    pub count: usize,
    /// First rows concerned.
    pub rows: Vec<RowPlace>,
    /// Message of the warning, as a sentence.
    pub message: String,
}

/// Form of the file that contains a row, on which the word for its place depends.
pub(crate) fn form_of(files: &[FileReport], row: RowPlace) -> Form {
    files.get(row.file).map_or(Form::Jsonl, |file| file.form)
}

/// Lists the first `most` names, and says how many there are besides.
pub(super) fn briefly(names: impl ExactSizeIterator<Item = String>, most: usize) -> String {
    let more = names.len().saturating_sub(most);
    let first = names.take(most).collect::<Vec<_>>().join(", ");
    match more {
        0 => first,
        _ => format!("{first} and {more} more"),
    }
}

impl DataWarning {
    /// Creates a warning that occurs `count` times, first in these rows.
    pub(crate) fn new(word: Word, count: usize, rows: Vec<RowPlace>, message: String) -> Self {
        let code = word.text();
        Self {
            code,
            count,
            rows,
            message,
        }
    }

    /// Creates a warning that concerns no row, with the values of its sentence.
    pub(crate) fn once(word: Word, values: [&str; 3]) -> Self {
        Self::new(word, 1, Vec::new(), told(word, values))
    }

    /// Creates a warning that concerns one row.
    pub(crate) fn of_row(word: Word, place: RowPlace, message: String) -> Self {
        Self::new(word, 1, vec![place], message)
    }

    /// Counts the warning in a list, which keeps the first message of each code, or of each code and message.
    pub(crate) fn count_in(self, list: &mut Vec<Self>, by_message: bool) {
        let same = |known: &&mut Self| {
            known.code == self.code && (!by_message || known.message == self.message)
        };
        match list.iter_mut().find(same) {
            Some(known) => {
                known.count += 1;
                if known.rows.len() < NAMED_ROWS {
                    known.rows.extend(self.rows);
                }
            }
            None => list.push(self),
        }
    }

    /// Warns about settings of rows for data that have none.
    pub(crate) fn unused_settings(keys: &[&str]) -> Option<Self> {
        let warning = || Self::once(word!("data.settings.unused"), ["", "", &keys.join(", ")]);
        (!keys.is_empty()).then(warning)
    }

    /// Warns about files in folders of texts that are not read, by their names.
    pub fn passed_over(names: &[String]) -> Option<Self> {
        const NAMED: usize = 5;
        let list = briefly(names.iter().map(|name| shown(name)), NAMED);
        (!names.is_empty()).then(|| Self::once(word!("data.folder"), ["", "", &list]))
    }

    /// Returns the message after the places of the first rows and, if there are several `files`, the names of theirs.
    pub fn sentence(&self, files: &[FileReport]) -> String {
        let place = |row: &RowPlace| {
            let (word, number) = row.in_form(form_of(files, *row));
            match files.get(row.file).filter(|_| files.len() > 1) {
                Some(file) => (word, format!("{number} of {}", file.name)),
                None => (word, number.to_string()),
            }
        };
        let places: Vec<(&str, String)> = self.rows.iter().map(place).collect();
        let [(first, _), others @ ..] = places.as_slice() else {
            return self.message.clone();
        };
        // These count characters and tokens, of which a row may have several.
        let within_rows = [word!("data.unknown"), word!("data.control")];
        let counts_rows = !within_rows.map(Word::text).contains(&self.code);
        let more = self.count.saturating_sub(places.len());
        let several = places.len() > 1 || counts_rows && more > 0;
        let list = if others.iter().all(|(word, _)| word == first) {
            let numbers: Vec<&str> = places.iter().map(|(_, number)| number.as_str()).collect();
            format!(
                "{first}{} {}",
                if several { "s" } else { "" },
                numbers.join(", ")
            )
        } else {
            let each = places
                .iter()
                .map(|(word, number)| format!("{word} {number}"));
            each.collect::<Vec<_>>().join(", ")
        };
        let rest = match more {
            0 => String::new(),
            _ if counts_rows => format!(" and {more} more"),
            _ if places.len() < NAMED_ROWS => String::new(),
            _ => ", …".to_owned(),
        };
        format!("{list}{rest}: {}", self.message)
    }
}
