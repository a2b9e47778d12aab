//! Warnings about a dataset, and their sentences with the places of rows.

use super::corpus::Dataset;
use super::entries::Entry;
use super::loader::{Fit, Loader};
use super::overview::SEQ_LEN_STEP;
use super::pack::Pieces;
use super::part::Part;
use super::place::{NAMED_ROWS, RowPlace};
use super::report::{DataWarning, FileReport};
use crate::config::{Form, OnLong};
use crate::error::{Refusal, Word, shown, word};

/// Form of the file that contains a row, on which the word for its place depends.
fn form_of(files: &[FileReport], row: RowPlace) -> Form {
    files.get(row.file).map_or(Form::Jsonl, |file| file.form)
}

impl DataWarning {
    /// Creates a warning that concerns no row.
    pub(super) fn once(word: Word, message: String) -> Self {
        Self {
            code: word.text(),
            count: 1,
            rows: Vec::new(),
            message,
        }
    }

    /// Warns about settings of rows for data that have none.
    pub(super) fn unused_settings(keys: &[&str]) -> Option<Self> {
        let message =
            Refusal::filled(word!("data.settings.unused"), ["", "", &keys.join(", ")]).to_string();
        (!keys.is_empty()).then(|| Self::once(word!("data.settings.unused"), message))
    }

    /// Warns about files in folders of texts that are not read, by their names.
    pub fn passed_over(names: &[String]) -> Option<Self> {
        const NAMED: usize = 5;
        let named: Vec<_> = names.iter().take(NAMED).map(|name| shown(name)).collect();
        let more = names.len() - named.len();
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let message = Refusal::filled(
            word!("data.folder"),
            ["", "", &format!("{}{more}", named.join(", "))],
        )
        .to_string();
        (!names.is_empty()).then(|| Self::once(word!("data.folder"), message))
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
        let counts_rows = ![word!("data.unknown"), word!("data.control")]
            .iter()
            .any(|word| word.text() == self.code);
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
            places
                .iter()
                .map(|(word, number)| format!("{word} {number}"))
                .collect::<Vec<_>>()
                .join(", ")
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

#[doc(hidden)]
impl Dataset {
    /// Returns all warnings about the data, as a run with these settings learns them.
    pub fn warnings(&self, loader: &Loader) -> Vec<DataWarning> {
        let (
            Fit {
                cut,
                skipped,
                untaught,
                ..
            },
            seq_len,
        ) = (loader.fit(), loader.state().seq_len);
        let lengths = self.lengths(
            self.train(),
            seq_len,
            [cut, skipped, untaught],
            loader.named_rows(),
        );
        // Rows refer to the training files only; for other files the message states where they are.
        let of_evaluated = |other: &Self| {
            let told = |warning: &DataWarning| {
                format!("data for evaluation: {}", warning.sentence(other.files()))
            };
            let warnings = other.evaluation_warnings(seq_len).into_iter();
            warnings
                .map(|warning| DataWarning {
                    message: told(&warning),
                    rows: Vec::new(),
                    ..warning
                })
                .collect()
        };
        let idle = loader
            .idle_on_long()
            .then(|| DataWarning::unused_settings(&["on_long"]))
            .flatten();
        [
            self.account().warnings(),
            Vec::from_iter(idle),
            self.shares(loader),
            lengths,
            self.others_evaluated()
                .map(of_evaluated)
                .unwrap_or_default(),
        ]
        .concat()
    }

    /// Warns about files of which a run reads nothing by their weights.
    fn shares(&self, loader: &Loader) -> Vec<DataWarning> {
        let warning = |(file, pieces, weight): (usize, usize, f64)| {
            let name = self.files().get(file).map_or("", |file| &file.name);
            let values = [name, &weight.to_string(), &pieces.to_string()];
            DataWarning::once(
                word!("data.share"),
                Refusal::filled(word!("data.share"), values).to_string(),
            )
        };
        loader.absent(self).into_iter().map(warning).collect()
    }

    /// Returns all warnings about the data when they are evaluated in windows of `seq_len` targets.
    pub fn evaluation_warnings(&self, seq_len: usize) -> Vec<DataWarning> {
        let part = self.whole();
        let Pieces {
            cut,
            untaught,
            long_rows,
            untaught_rows,
            ..
        } = Pieces::of(part.entries(), seq_len, OnLong::Cut);
        [
            self.account().warnings(),
            self.lengths(
                part,
                seq_len,
                [cut, 0, untaught],
                [&long_rows, &untaught_rows],
            ),
        ]
        .concat()
    }

    /// Warns about examples that are cut, skipped or teach nothing because of their length, with the first rows of them.
    fn lengths(
        &self,
        part: Part<'_>,
        seq_len: usize,
        [cut, skipped, untaught]: [usize; 3],
        rows: [&[u32]; 2],
    ) -> Vec<DataWarning> {
        let longest = part.entries().lengths().max().unwrap_or(0) as usize;
        let places = |rows: &[u32]| {
            rows.iter()
                .filter_map(|row| self.account().place(*row))
                .collect()
        };
        let [long, taught_nothing] = rows.map(places);
        let mut warnings = Vec::new();
        if cut + skipped > 0 {
            let (count, what) = if skipped > 0 {
                (skipped, "left out")
            } else {
                (cut, "cut at their end")
            };
            let documents = part
                .entries()
                .iter()
                .any(|entry| entry.document() && entry.pairs() > seq_len);
            let subject = format!("{count} of {}", part.entries().len());
            let hint = format!(
                "the longest has {longest}: sequences of {} hold all{}",
                longest.saturating_sub(1).next_multiple_of(SEQ_LEN_STEP),
                if documents {
                    ", and on_long split learns all of a document"
                } else {
                    ""
                }
            );
            let message =
                Refusal::filled(word!("data.long"), [&subject, &seq_len.to_string(), what])
                    .hint(hint)
                    .to_string();
            warnings.push(DataWarning {
                code: word!("data.long").text(),
                count,
                rows: long,
                message,
            });
        }
        if untaught > 0 {
            let later = |entry: &Entry| entry.learned() > 0 && !entry.teaches(0, seq_len);
            let needed = part
                .entries()
                .iter()
                .filter(later)
                .map(|entry| entry.pairs())
                .max();
            let hint = match needed {
                Some(pairs) => format!(
                    "sequences of {} hold their answers",
                    pairs.next_multiple_of(SEQ_LEN_STEP)
                ),
                None => String::new(),
            };
            let told = Refusal::filled(
                word!("data.untaught"),
                ["", &seq_len.to_string(), &untaught.to_string()],
            );
            let message = told.hint(hint).to_string();
            warnings.push(DataWarning {
                code: word!("data.untaught").text(),
                count: untaught,
                rows: taught_nothing,
                message,
            });
        }
        warnings
    }

    /// Describes briefly how the files were read: the form of each, and the rows with a warning.
    pub(crate) fn as_read(&self) -> String {
        let file = |file: &FileReport| match file.rows {
            Some(rows) => format!("{} read as {}, rows: {rows}", file.name, file.form.name()),
            None => format!("{} read as {}", file.name, file.form.name()),
        };
        let warning = |warning: &DataWarning| {
            let place = |row: &RowPlace| {
                let (word, number) = row.in_form(form_of(self.files(), *row));
                format!("{word} {number}")
            };
            let places: Vec<String> = warning.rows.iter().map(place).collect();
            if places.is_empty() {
                warning.code.to_owned()
            } else {
                format!("{} of {}", warning.code, places.join(", "))
            }
        };
        let files = self.files().iter().map(file);
        let told = files
            .chain(self.account().warnings().iter().map(warning))
            .collect::<Vec<_>>()
            .join("; ");
        if told.is_empty() {
            told
        } else {
            format!("({told})")
        }
    }
}
