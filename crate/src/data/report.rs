//! The account of data: everything that was read, left out or changed on the way, for the person to see before the first step.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::answers::Rule;
use super::example::Example;
use super::place::RowPlace;
use super::shape::Record;
use crate::config::{DataSettings, Form};
use crate::error::{Result, Word, shown, word};
use crate::tokenizer::{Date, Tokenizer};

/// Rows whose places are kept: a preview shows no more.
const PLACES: usize = 1 << 16;
/// Rows that a warning names.
pub(super) const NAMED_ROWS: usize = 5;

/// A file as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileReport {
    /// Its name.
    pub name: String,
    /// The form that was found, or given.
    pub form: Form,
    /// Its rows; null for a stream of text or ids.
    pub rows: Option<usize>,
}

/// A file by itself, as far as it is known without a tokenizer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileSummary {
    /// Its name.
    pub name: String,
    /// The form that was found, or given.
    pub form: Form,
    /// Its rows; null for a stream of text or ids.
    pub rows: Option<usize>,
    /// Rows of each kind: chat, completion, text, tokens, and faulty.
    pub shapes: BTreeMap<&'static str, usize>,
    /// Keys of the rows, in the order in which they come; at most 50.
    pub columns: Vec<String>,
    /// Characters of a text or of rows, and ids of token ids.
    pub characters: usize,
}

/// Something about the data that a person should know, although nothing was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DataWarning {
    /// Stable dotted word.
    pub code: &'static str,
    /// How often it is so.
    pub count: usize,
    /// The first rows of which it is so.
    pub rows: Vec<RowPlace>,
    /// A sentence.
    pub message: String,
}

/// Tokens of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokenCounts {
    /// All tokens of the training part.
    pub total: usize,
    /// Those among them that are learned.
    pub learned: usize,
}

/// Lengths of the training examples, in tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lengths {
    /// The shortest.
    pub min: usize,
    /// The median.
    pub p50: usize,
    /// 95 % are not longer.
    pub p95: usize,
    /// The longest.
    pub max: usize,
    /// Examples by length, from 0 to the longest in equal steps of `histogram_step` tokens.
    pub histogram: Vec<usize>,
    /// Tokens from one bar of the histogram to the next.
    pub histogram_step: usize,
}

/// Training data as they are learned.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DataReport {
    /// The files.
    pub files: Vec<FileReport>,
    /// Rows of each kind: chat, completion, text, tokens.
    pub shapes: BTreeMap<&'static str, usize>,
    /// Chats by the way in which their learned tokens were found: generation, prefix, per-answer, all.
    pub rules: BTreeMap<&'static str, usize>,
    /// Examples that are trained on; 0 of a stream.
    pub examples: usize,
    /// Examples, or tokens of a stream, that are kept for evaluation.
    pub validation: usize,
    /// Tokens of the training part.
    pub tokens: TokenCounts,
    /// Lengths of the training examples; null of a stream.
    pub lengths: Option<Lengths>,
    /// T, the tokens of a sequence.
    pub seq_len: usize,
    /// Examples whose end is left out.
    pub cut: usize,
    /// Examples that are left out: too long by `on_long`, or without a learned token within `seq_len`.
    pub skipped: usize,
    /// Sequences of an epoch.
    pub windows: usize,
    /// Share of the positions of these sequences that hold tokens.
    pub packed_fraction: f64,
    /// Steps of an epoch; the last one may reach into the next epoch.
    pub steps_per_epoch: u64,
    /// Tokens that end a text or a turn.
    pub end: Vec<String>,
    /// What a person should know.
    pub warnings: Vec<DataWarning>,
    /// SHA-256 of the examples, or of the stream.
    pub digest: String,
}

/// What is counted while data are read.
#[derive(Debug, Clone, Default)]
pub(super) struct Account {
    files: Vec<FileReport>,
    shapes: BTreeMap<&'static str, usize>,
    rules: BTreeMap<&'static str, usize>,
    /// Rows that are learned, and the places of the first of them.
    rows: u32,
    file_ends: Vec<u32>,
    first_rows: Vec<RowPlace>,
    /// Keys that nothing reads, of how many rows, and the first of these.
    unread: BTreeMap<String, (usize, RowPlace)>,
    warnings: Vec<DataWarning>,
    turn_ends: Vec<u32>,
    /// Texts of the tokens that end a text, or a turn.
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

    /// For each file, the index of the row after its last one.
    pub fn file_ends(&self) -> &[u32] {
        &self.file_ends
    }

    pub fn file_reports(&self) -> &[FileReport] {
        &self.files
    }

    /// Adds a row that is learned. → its index.
    pub fn row(&mut self, place: RowPlace) -> u32 {
        if self.first_rows.len() < PLACES {
            self.first_rows.push(place);
        }
        self.rows += 1;
        self.rows - 1
    }

    /// The place of one of the first rows.
    pub fn place(&self, row: u32) -> Option<RowPlace> {
        self.first_rows.get(row as usize).copied()
    }

    pub fn shape(&mut self, record: &Record) {
        *self.shapes.entry(record.name()).or_default() += 1;
    }

    pub fn shapes(&self) -> &BTreeMap<&'static str, usize> {
        &self.shapes
    }

    pub fn chat(&mut self, rule: Rule) {
        *self.rules.entry(rule.name()).or_default() += 1;
    }

    pub fn rules(&self) -> &BTreeMap<&'static str, usize> {
        &self.rules
    }

    /// Notes special tokens that end an answer and no text, as those of a base model. Marks may enclose parts of an answer, and where all is
    /// learned the user's turns count too: there the last token alone ends an answer.
    pub fn turn_ends(&mut self, examples: &[Example], rule: Rule, tokenizer: &Tokenizer) {
        for Example { ids, counted, .. } in examples {
            let last = counted.iter().rposition(|counted| *counted);
            let each = matches!(rule, Rule::Prefix | Rule::PerAnswer);
            let ends = |at: &usize| counted.get(*at) == Some(&true) && (Some(*at) == last || each && counted.get(at + 1) != Some(&true));
            for id in (0..ids.len()).filter(ends).filter_map(|at| ids.get(at)) {
                if tokenizer.is_special(*id) && !tokenizer.eos().contains(id) && !self.turn_ends.contains(id) {
                    self.turn_ends.push(*id);
                }
            }
        }
    }

    /// Ids that end a turn of the chats, and no text by the tokenizer's files.
    pub fn ends_of_turns(&self) -> &[u32] {
        &self.turn_ends
    }

    /// Notes why the model does not learn to stop.
    pub fn end_unknown(&mut self, reason: &'static str) {
        self.end_unknown = Some(reason);
    }

    /// Notes keys of a row that are not read.
    pub fn unread<'a>(&mut self, keys: impl Iterator<Item = &'a String>, place: RowPlace) {
        for key in keys {
            match self.unread.get_mut(key) {
                Some((count, _)) => *count += 1,
                None => drop(self.unread.insert(key.clone(), (1, place))),
            }
        }
    }

    /// Adds to the warning of a word, whose first message stays.
    pub fn warn(&mut self, word: Word, place: Option<RowPlace>, message: String) {
        let found = self.warnings.iter().position(|warning| warning.code == word.text() && (place.is_some() || warning.message == message));
        let at = found.unwrap_or_else(|| {
            self.warnings.push(DataWarning { code: word.text(), count: 0, rows: Vec::new(), message });
            self.warnings.len() - 1
        });
        let Some(warning) = self.warnings.get_mut(at) else { return };
        warning.count += 1;
        if warning.rows.len() < NAMED_ROWS {
            warning.rows.extend(place);
        }
    }

    /// The date that chat templates see.
    pub fn date(&self, settings: &DataSettings) -> Result<Option<Date>> {
        settings.chat_date.as_deref().map(str::parse).transpose()
    }

    /// Keeps the texts of the tokens that end a text or a turn.
    pub fn ends(&mut self, tokenizer: &Tokenizer) {
        let ids = tokenizer.eos().iter().chain(&self.turn_ends);
        self.end_texts = ids.filter_map(|id| tokenizer.token_text(*id).ok()).collect();
    }

    pub fn end_texts(&self) -> &[String] {
        &self.end_texts
    }

    /// All warnings, with those that are known when everything is read.
    pub fn warnings(&self) -> Vec<DataWarning> {
        const KEYS: usize = 12;
        let mut warnings = self.warnings.clone();
        let mut add = |word: Word, count, rows, message| warnings.push(DataWarning { code: word.text(), count, rows, message });
        if !self.unread.is_empty() {
            let mut keys: Vec<String> = self.unread.iter().take(KEYS).map(|(key, (rows, _))| format!("{} ({rows})", shown(key))).collect();
            if self.unread.len() > KEYS {
                keys.push(format!("{} more", self.unread.len() - KEYS));
            }
            let message = format!("nothing reads these keys, of so many rows: {}", keys.join(", "));
            let rows: BTreeSet<RowPlace> = self.unread.values().map(|(_, first)| *first).collect();
            let most = self.unread.values().map(|(rows, _)| *rows).max().unwrap_or(0);
            add(word!("data.columns.unused"), most, rows.into_iter().take(NAMED_ROWS).collect(), message);
        }
        if !self.turn_ends.is_empty() {
            let texts = self.end_texts.iter().rev().take(self.turn_ends.len()).rev();
            let names: Vec<String> = texts.map(|text| shown(text)).collect();
            let message = format!(
                "the template ends a turn with {}, which ends no text by the tokenizer's files: it is learned, and generation stops there",
                names.join(", ")
            );
            add(word!("data.end.turn"), self.turn_ends.len(), Vec::new(), message);
        }
        if let Some(reason) = self.end_unknown {
            add(word!("data.end.unknown"), 1, Vec::new(), format!("{reason}: the model does not learn to stop"));
        }
        warnings
    }
}
