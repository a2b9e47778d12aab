//! Account of data as they are read: kinds, places and warnings of rows.

use std::collections::{BTreeMap, BTreeSet};

use super::answers::Rule;
use super::content::RowContent;
use super::example::Example;
use super::text_findings::TextFindings;
use crate::config::DataSettings;
use crate::data::read::{DataWarning, FileReport, NAMED_ROWS, RowPlace, named};
use crate::error::{Refusal, Result, Word, shown, word};
use crate::tokenizer::{Date, Tokenizer};

/// Number of rows whose places are kept: a preview shows no more.
const PLACES: usize = 1 << 16;

/// Counts and warnings that are collected while data are read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Account {
    files: Vec<FileReport>,
    shapes: BTreeMap<&'static str, usize>,
    rules: BTreeMap<&'static str, usize>,
    /// Number of learned rows, and the places of the first of them.
    rows: u32,
    file_ends: Vec<u32>,
    first_rows: Vec<RowPlace>,
    /// Keys that nothing reads, with the number of rows that have them and the first such row.
    unread: BTreeMap<String, (usize, RowPlace)>,
    warnings: Vec<DataWarning>,
    pub texts: TextFindings,
    turn_ends: Vec<u32>,
    /// Texts of the tokens that end a text or a turn.
    end_texts: Vec<String>,
    end_unknown: Option<&'static str>,
}

impl Account {
    pub fn files(&self) -> usize {
        self.files.len()
    }

    pub fn file(&mut self, file: FileReport) {
        self.files.push(file);
        self.file_ends.push(self.rows);
    }

    /// Returns for each file the index of the row after its last one.
    pub fn file_ends(&self) -> &[u32] {
        &self.file_ends
    }

    pub fn file_reports(&self) -> &[FileReport] {
        &self.files
    }

    /// Adds a learned row, and returns its index.
    pub fn row(&mut self, place: RowPlace) -> u32 {
        if self.first_rows.len() < PLACES {
            self.first_rows.push(place);
        }
        self.rows += 1;
        self.rows - 1
    }

    /// Returns the place of one of the first rows.
    pub fn place(&self, row: u32) -> Option<RowPlace> {
        self.first_rows.get(row as usize).copied()
    }

    /// Counts a row under the name of its content.
    pub(super) fn kind(&mut self, content: &RowContent) {
        *self.shapes.entry(content.name()).or_default() += 1;
    }

    pub fn shapes(&self) -> &BTreeMap<&'static str, usize> {
        &self.shapes
    }

    pub(super) fn chat(&mut self, rule: Rule) {
        *self.rules.entry(rule.name()).or_default() += 1;
    }

    pub fn rules(&self) -> &BTreeMap<&'static str, usize> {
        &self.rules
    }

    /// Records tokens that end an answer but no text, as in base models. Marks may enclose parts of an answer, and if everything is
    /// learned the user's turns count too: in these cases only the last token ends an answer.
    pub(super) fn turn_ends(&mut self, examples: &[Example], rule: Rule, tokenizer: &Tokenizer) {
        for example in examples {
            let (Example { ids, counted, .. }, last) = (example, example.last_learned(tokenizer));
            let each = matches!(rule, Rule::Prefix | Rule::PerAnswer);
            let ends = |at: &usize| {
                counted.get(*at) == Some(&true)
                    && (Some(*at) == last || each && counted.get(at + 1) != Some(&true))
            };
            for id in (0..ids.len()).filter(ends).filter_map(|at| ids.get(at)) {
                if tokenizer.is_mark(*id)
                    && !tokenizer.eos().contains(id)
                    && !self.turn_ends.contains(id)
                {
                    self.turn_ends.push(*id);
                }
            }
        }
    }

    /// Returns the ids that end a turn in the chats but, by the tokenizer's files, no text.
    pub fn ends_of_turns(&self) -> &[u32] {
        &self.turn_ends
    }

    /// Records the reason why the model does not learn to stop.
    pub fn end_unknown(&mut self, reason: &'static str) {
        self.end_unknown = Some(reason);
    }

    /// Records keys of a row that are not read.
    pub fn unread<'a>(&mut self, keys: impl Iterator<Item = &'a String>, place: RowPlace) {
        for key in keys {
            match self.unread.get_mut(key) {
                Some((count, _)) => *count += 1,
                None => drop(self.unread.insert(key.clone(), (1, place))),
            }
        }
    }

    /// Counts a warning under its code, which keeps its first message, except that quotes are reported by what is wrong with them.
    pub fn warn(&mut self, word: Word, place: Option<RowPlace>, message: String) {
        let one = place.is_some() && word != word!("data.quotes");
        let found = self
            .warnings
            .iter()
            .position(|warning| warning.code == word.text() && (one || warning.message == message));
        let at = found.unwrap_or_else(|| {
            self.warnings.push(DataWarning {
                code: word.text(),
                count: 0,
                rows: Vec::new(),
                message,
            });
            self.warnings.len() - 1
        });
        let Some(warning) = self.warnings.get_mut(at) else {
            return;
        };
        warning.count += 1;
        if warning.rows.len() < NAMED_ROWS {
            warning.rows.extend(place);
        }
    }

    /// Counts a warning about a row under its code.
    pub fn say(&mut self, word: Word, place: RowPlace) {
        self.warn(
            word,
            Some(place),
            Refusal::filled(word, [""; 3]).to_string(),
        );
    }

    /// Adds a warning that concerns no row, if there is a message.
    pub fn warn_once(&mut self, word: Word, message: Option<String>) {
        message
            .into_iter()
            .for_each(|message| self.warn(word, None, message));
    }

    /// Returns the date that chat templates see.
    pub fn date(&self, settings: &DataSettings) -> Result<Option<Date>> {
        settings.chat_date.as_deref().map(str::parse).transpose()
    }

    /// Stores the texts of the tokens that end a text or a turn.
    pub fn ends(&mut self, tokenizer: &Tokenizer) {
        let ids = tokenizer.eos().iter().chain(&self.turn_ends);
        self.end_texts = ids
            .filter_map(|id| tokenizer.token_text(*id).ok())
            .collect();
    }

    pub fn end_texts(&self) -> &[String] {
        &self.end_texts
    }

    /// Returns all warnings, including those that are known only when everything is read.
    pub fn warnings(&self) -> Vec<DataWarning> {
        const KEYS: usize = 12;
        let mut warnings = self.warnings.clone();
        let mut add = |word: Word, count, rows, message| {
            warnings.push(DataWarning {
                code: word.text(),
                count,
                rows,
                message,
            })
        };
        self.texts
            .reported()
            .for_each(|(word, count, rows, message)| add(word, count, rows, message));
        let told = |word: Word, found: &str| Refusal::filled(word, ["", "", found]).to_string();
        if !self.unread.is_empty() {
            let mut keys: Vec<String> = self
                .unread
                .iter()
                .take(KEYS)
                .map(|(key, (rows, _))| format!("{} ({rows})", named(key)))
                .collect();
            keys.extend(
                (self.unread.len() > KEYS).then(|| format!("{} more", self.unread.len() - KEYS)),
            );
            let rows = BTreeSet::from_iter(self.unread.values().map(|(_, first)| *first));
            let most = self
                .unread
                .values()
                .map(|(rows, _)| *rows)
                .max()
                .unwrap_or(0);
            let rows = rows.into_iter().take(NAMED_ROWS).collect();
            add(
                word!("data.columns.unused"),
                most,
                rows,
                told(word!("data.columns.unused"), &keys.join(", ")),
            );
        }
        if !self.turn_ends.is_empty() {
            let names: Vec<String> = self
                .end_texts
                .iter()
                .rev()
                .take(self.turn_ends.len())
                .rev()
                .map(|text| shown(text))
                .collect();
            add(
                word!("data.end.turn"),
                self.turn_ends.len(),
                Vec::new(),
                told(word!("data.end.turn"), &names.join(", ")),
            );
        }
        if let Some(reason) = self.end_unknown {
            add(
                word!("data.end.unknown"),
                1,
                Vec::new(),
                told(word!("data.end.unknown"), reason),
            );
        }
        warnings
    }
}
