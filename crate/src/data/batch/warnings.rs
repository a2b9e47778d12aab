//! Warnings about a dataset as a run learns it.

use super::dataset::Dataset;
use super::examples::StoredExample;
use super::loader::{Fit, Loader};
use super::pack::Pieces;
use super::report::SEQ_LEN_STEP;
use super::side::Side;
use crate::config::OnLong;
use crate::data::read::{DataWarning, FileReport, RowPlace, form_of};
use crate::error::{Refusal, word};

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
        let side = self.whole();
        let Pieces {
            cut,
            untaught,
            long_rows,
            untaught_rows,
            ..
        } = Pieces::of(side.examples(), seq_len, OnLong::Cut);
        [
            self.account().warnings(),
            self.lengths(
                side,
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
        side: Side<'_>,
        seq_len: usize,
        [cut, skipped, untaught]: [usize; 3],
        rows: [&[u32]; 2],
    ) -> Vec<DataWarning> {
        let longest = side.examples().lengths().max().unwrap_or(0) as usize;
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
            let documents = side
                .examples()
                .iter()
                .any(|example| example.document() && example.pairs() > seq_len);
            let subject = format!("{count} of {}", side.examples().len());
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
            let later =
                |example: &StoredExample| example.learned() > 0 && !example.teaches(0, seq_len);
            let needed = side
                .examples()
                .iter()
                .filter(later)
                .map(|example| example.pairs())
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
