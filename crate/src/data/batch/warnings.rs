//! Warnings about a dataset as a run learns it.

use super::dataset::Dataset;
use super::examples::StoredExample;
use super::loader::Loader;
use super::pack::Pieces;
use super::report::SEQ_LEN_STEP;
use super::side::Side;
use crate::config::OnLong;
use crate::data::read::{DataWarning, FileReport, RowPlace, form_of};
use crate::error::{Refusal, Word, word};

#[doc(hidden)]
impl Dataset {
    /// Returns all warnings about the data, as a run with these settings learns them.
    pub fn warnings(&self, loader: &Loader) -> Vec<DataWarning> {
        let seq_len = loader.state().seq_len;
        let lengths = |pieces: &Pieces| self.lengths(self.train(), seq_len, pieces);
        // Rows refer to the training files only; for other files the message states where they are.
        let of_evaluated = |other: &Self| {
            let of_file = |warning: DataWarning| {
                let sentence = warning.sentence(other.files());
                DataWarning {
                    message: format!("data for evaluation: {sentence}"),
                    rows: Vec::new(),
                    ..warning
                }
            };
            let warnings = other.evaluation_warnings(seq_len).into_iter();
            warnings.map(of_file).collect()
        };
        let idle = loader
            .idle_on_long()
            .then(|| DataWarning::unused_settings(&["on_long"]))
            .flatten();
        [
            self.account.warnings(),
            Vec::from_iter(idle),
            self.shares(loader),
            loader.pieces().map(lengths).unwrap_or_default(),
            self.validation
                .as_deref()
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
            DataWarning::once(word!("data.share"), values)
        };
        loader.absent().into_iter().map(warning).collect()
    }

    /// Returns all warnings about the data when they are evaluated in windows of `seq_len` targets.
    pub fn evaluation_warnings(&self, seq_len: usize) -> Vec<DataWarning> {
        let side = self.whole();
        let pieces = Pieces::of(side.examples(), seq_len, OnLong::Cut);
        let lengths = self.lengths(side, seq_len, &pieces);
        [self.account.warnings(), lengths].concat()
    }

    /// Warns about examples that are cut, skipped or teach nothing because of their length, with the first rows of them.
    fn lengths(&self, side: Side<'_>, seq_len: usize, pieces: &Pieces) -> Vec<DataWarning> {
        let (examples, size) = (side.examples(), seq_len.to_string());
        let mut warnings = Vec::new();
        let mut warn = |code: Word, count, rows: &[u32], values: [&str; 3], hint: String| {
            let rows = rows.iter().filter_map(|row| self.account.place(*row));
            let message = Refusal::filled(code, values).hint(hint).to_string();
            warnings.push(DataWarning::new(code, count, rows.collect(), message));
        };
        if pieces.cut + pieces.skipped > 0 {
            let (count, treated) = match pieces.skipped {
                0 => (pieces.cut, "cut at their end"),
                skipped => (skipped, "left out"),
            };
            let longest = examples.lengths().max().unwrap_or(0) as usize;
            let whole = longest.saturating_sub(1).next_multiple_of(SEQ_LEN_STEP);
            let is_long = |example: StoredExample| example.document() && example.pairs() > seq_len;
            let split = match examples.iter().any(is_long) {
                true => ", and on_long split learns all of a document",
                false => "",
            };
            let hint = format!("the longest has {longest}: sequences of {whole} hold all{split}");
            let subject = format!("{count} of {}", examples.len());
            let values = [subject.as_str(), &size, treated];
            warn(word!("data.long"), count, &pieces.long_rows, values, hint);
        }
        if pieces.untaught > 0 {
            let later =
                |example: &StoredExample| example.learned() > 0 && !example.teaches(0, seq_len);
            let needed = examples.iter().filter(later).map(|example| example.pairs());
            let hint = needed.max().map(|pairs| {
                let whole = pairs.next_multiple_of(SEQ_LEN_STEP);
                format!("sequences of {whole} hold their answers")
            });
            let (count, rows) = (pieces.untaught, &pieces.untaught_rows);
            let values = ["", &size, &count.to_string()];
            warn(
                word!("data.untaught"),
                count,
                rows,
                values,
                hint.unwrap_or_default(),
            );
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
            match places.as_slice() {
                [] => warning.code.to_owned(),
                places => format!("{} of {}", warning.code, places.join(", ")),
            }
        };
        let warnings = self.account.warnings();
        let told = self
            .files()
            .iter()
            .map(file)
            .chain(warnings.iter().map(warning));
        match told.collect::<Vec<_>>().as_slice() {
            [] => String::new(),
            told => format!("({})", told.join("; ")),
        }
    }
}
