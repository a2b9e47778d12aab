//! Account of data as they are read: kinds, places and warnings of rows.

use std::collections::{BTreeMap, BTreeSet};

use super::answers::Rule;
use super::example::Example;
use super::text_findings::TextFindings;
use crate::data::read::{DataWarning, FileReport, NAMED_ROWS, RowPlace, named, told};
use crate::error::{Word, shown, word};
use crate::tokenizer::Tokenizer;

/// Number of rows whose places are kept: a preview shows no more.
const PLACES: usize = 1 << 16;

/// Counts and warnings that are collected while data are read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Account {
    pub files: Vec<FileReport>,
    /// Number of rows by the name of their content.
    pub shapes: BTreeMap<&'static str, usize>,
    /// Number of chats by the name of their rule.
    pub rules: BTreeMap<&'static str, usize>,
    /// Number of learned rows, and the places of the first of them.
    rows: u32,
    /// Index of the row after the last one of each file.
    pub file_ends: Vec<u32>,
    first_rows: Vec<RowPlace>,
    /// Keys that nothing reads, with the number of rows that have them and the first such row.
    unread: BTreeMap<String, (usize, RowPlace)>,
    warnings: Vec<DataWarning>,
    pub texts: TextFindings,
    /// Ids that end a turn in the chats but, by the tokenizer's files, no text.
    pub turn_ends: Vec<u32>,
    /// Texts of the tokens that end a text or a turn.
    pub end_texts: Vec<String>,
    /// Reason why the model does not learn to stop.
    pub end_unknown: Option<&'static str>,
}

impl Account {
    pub fn file(&mut self, file: FileReport) {
        self.files.push(file);
        self.file_ends.push(self.rows);
    }

    /// Adds a learned row, and returns its index.
    pub fn row(&mut self, place: RowPlace) -> u32 {
        if self.first_rows.len() < PLACES {
            self.first_rows.push(place);
        }
        self.rows += 1;
        self.rows - 1
    }

    /// The place of a learned row; `None` if it is not among the first 65,536.
    pub fn place(&self, row: u32) -> Option<RowPlace> {
        self.first_rows.get(row as usize).copied()
    }

    /// Records tokens that end an answer but no text, as in base models. Marks may enclose parts of an answer, and if everything is
    /// learned the user's turns count too: in these cases only the last token ends an answer.
    pub(super) fn turn_ends(&mut self, examples: &[Example], rule: Rule, tokenizer: &Tokenizer) {
        let each = matches!(rule, Rule::Prefix | Rule::PerAnswer);
        for example in examples {
            let last = example.last_learned(tokenizer);
            for (at, &id) in example.ids.iter().enumerate() {
                let ends = Some(at) == last || each && !example.counts(at + 1);
                if ends
                    && example.counts(at)
                    && tokenizer.is_mark(id)
                    && !tokenizer.eos().contains(&id)
                    && !self.turn_ends.contains(&id)
                {
                    self.turn_ends.push(id);
                }
            }
        }
    }

    /// Records a key of a row that is not read.
    pub fn unread(&mut self, key: &str, place: RowPlace) {
        match self.unread.get_mut(key) {
            Some((count, _)) => *count += 1,
            None => drop(self.unread.insert(key.to_owned(), (1, place))),
        }
    }

    /// Counts a warning, if there is one. About rows each code keeps its first message, but for quotes, which are reported by what is wrong
    /// with them.
    pub fn warn(&mut self, warning: impl Into<Option<DataWarning>>) {
        if let Some(warning) = warning.into() {
            let by_message = warning.rows.is_empty() || warning.code == word!("data.quotes").text();
            warning.count_in(&mut self.warnings, by_message);
        }
    }

    /// Counts a warning about a row whose sentence has no values.
    pub fn say(&mut self, word: Word, place: RowPlace) {
        self.warn(DataWarning::of_row(word, place, told(word, [""; 3])));
    }

    /// Stores the texts of the tokens that end a text or a turn.
    pub fn ends(&mut self, tokenizer: &Tokenizer) {
        let ids = tokenizer.eos().iter().chain(&self.turn_ends);
        self.end_texts = ids
            .filter_map(|id| tokenizer.token_text(*id).ok())
            .collect();
    }

    /// All warnings, including those that are known only when everything is read.
    pub fn warnings(&self) -> Vec<DataWarning> {
        const KEYS: usize = 12;
        let mut warnings = self.warnings.clone();
        warnings.extend(self.texts.reported());
        let mut add = |word: Word, count, rows, found: &str| {
            let message = told(word, ["", "", found]);
            warnings.push(DataWarning::new(word, count, rows, message));
        };
        if !self.unread.is_empty() {
            let key = |(key, (rows, _)): (&String, &(usize, RowPlace))| {
                format!("{} ({rows})", named(key))
            };
            let mut keys: Vec<String> = self.unread.iter().take(KEYS).map(key).collect();
            if self.unread.len() > KEYS {
                keys.push(format!("{} more", self.unread.len() - KEYS));
            }
            let (counts, rows): (BTreeSet<usize>, BTreeSet<RowPlace>) =
                self.unread.values().copied().unzip();
            let most = counts.last().copied().unwrap_or(0);
            let rows = rows.into_iter().take(NAMED_ROWS).collect();
            add(word!("data.columns.unused"), most, rows, &keys.join(", "));
        }
        if !self.turn_ends.is_empty() {
            let count = self.turn_ends.len();
            let of_turns = self
                .end_texts
                .iter()
                .skip(self.end_texts.len().saturating_sub(count));
            let names: Vec<String> = of_turns.map(|text| shown(text)).collect();
            add(word!("data.end.turn"), count, Vec::new(), &names.join(", "));
        }
        if let Some(reason) = self.end_unknown {
            add(word!("data.end.unknown"), 1, Vec::new(), reason);
        }
        warnings
    }
}
