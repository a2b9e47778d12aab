//! Settings that control how data is read.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::TrainConfig;
use super::declare::{settings, words};
use super::rules::Rules;
use crate::error::Fault;

/// Form of a data file ([example](crate)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Plain text, read as one stream of tokens.
    Text,
    /// One JSON object per line.
    Jsonl,
    /// A JSON array of objects, an object with one array of objects, or a single row.
    Json,
    /// Records with fields separated by commas or semicolons (RFC 4180); the first record names the columns.
    Csv,
    /// Like csv, with fields separated by tabs.
    Tsv,
    /// Token ids, u32 little endian, read as one stream. No tokenizer is needed.
    Tokens,
}

#[doc(hidden)]
impl Form {
    /// The name used in settings and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Jsonl => "jsonl",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Tokens => "tokens",
        }
    }
}

settings! {
    /// Columns of a row, under tabtune's names. A value is the name of a key, or a pattern with names in braces:
    /// `"Question: {question}\nAnswer:"`; `{{` and `}}` are literal braces.
    #[doc(hidden)]
    #[derive(Eq)]
    pub struct Columns {
        /// Text before the answer, which the model reads but does not learn.
        prompt: Option<String> = None,
        /// Answer, which the model learns.
        completion: Option<String> = None,
        /// System message before a prompt.
        system: Option<String> = None,
        /// Document, all of which the model learns.
        text: Option<String> = None,
        /// List of messages.
        messages: Option<String> = None,
    }
}

words! {
    /// Treatment of a row that cannot be used.
    #[doc(hidden)]
    pub enum OnBadRow {
        /// The data is refused; all such rows are counted, and the first hundred reported.
        #[default]
        Stop,
        /// The row is left out and reported.
        Skip,
    }
}

words! {
    /// Messages of a chat that are learned.
    pub enum LossOn {
        /// Every answer of the assistant.
        #[default]
        Assistant,
        /// The last answer of the assistant.
        Last,
        /// The whole text, including the user's messages.
        All,
    }
}

words! {
    /// Rows that are kept for evaluation.
    #[doc(hidden)]
    pub enum ValidationRows {
        /// Rows drawn at random, by the seed.
        #[default]
        Random,
        /// The last rows, for data in order of time.
        Last,
    }
}

impl ValidationRows {
    /// The value for checkpoints without this setting, which kept the last rows.
    pub(super) fn before_it_was_set() -> Self {
        Self::Last
    }
}

words! {
    /// Treatment of an example that is longer than a sequence.
    #[doc(hidden)]
    pub enum OnLong {
        /// Its end is left out, including its end token.
        #[default]
        Cut,
        /// The example is left out.
        Skip,
        /// A document is divided into several sequences, each beginning where the one before ends; other examples are
        /// cut.
        Split,
    }
}

/// Settings of a run that control how its data become examples.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DataSettings {
    /// Form of the files; `None` detects it from their contents.
    pub form: Option<Form>,
    /// True if a resume has the form from its checkpoint, and not from the person who resumes.
    pub form_kept: bool,
    /// Columns of a row; if `None`, the keys of the row decide.
    pub columns: Option<Columns>,
    /// Treatment of rows that cannot be used.
    pub on_bad_row: OnBadRow,
    /// Messages that are learned.
    pub loss_on: LossOn,
    /// Date that chat templates see, as YYYY-MM-DD.
    pub chat_date: Option<String>,
    /// Share of the data kept for evaluation.
    pub validation_fraction: f64,
    /// Number of rows, and of tokens of a text, from which on that share is kept.
    pub divided_from: [usize; 2],
    /// Rows that are kept for evaluation.
    pub validation_rows: ValidationRows,
    /// Seed by which they are drawn.
    pub seed: u64,
    /// True if the files are the beginnings of longer ones: the last row of each, which may be incomplete, is left out.
    pub partial: bool,
}

impl DataSettings {
    /// The names of the settings about rows that differ from their defaults.
    pub(crate) fn about_rows(&self) -> Vec<&'static str> {
        let given = [
            ("loss_on", self.loss_on != LossOn::default()),
            ("on_bad_row", self.on_bad_row != OnBadRow::default()),
            (
                "validation_rows",
                self.validation_rows != ValidationRows::default(),
            ),
        ];
        given
            .into_iter()
            .filter(|(_, given)| *given)
            .map(|(key, _)| key)
            .collect()
    }
}

impl TrainConfig {
    /// The settings that control how the data of a resume is read, for which `given` are set again: the others
    /// are the checkpoint's.
    pub fn data_settings_of_resume(&self, given: &Map<String, Value>) -> DataSettings {
        DataSettings {
            form_kept: !given.contains_key("form"),
            ..self.data_settings()
        }
    }

    /// The settings that control how data is read.
    pub fn data_settings(&self) -> DataSettings {
        DataSettings {
            form: self.form,
            form_kept: false,
            columns: self.columns.clone(),
            on_bad_row: self.on_bad_row,
            loss_on: self.loss_on,
            chat_date: self.chat_date.clone(),
            validation_fraction: self.validation_fraction,
            divided_from: [0; 2],
            validation_rows: self.validation_rows,
            seed: self.seed,
            partial: false,
        }
    }
}

impl Columns {
    /// The rules that these columns break.
    pub(super) fn faults(&self) -> Vec<Fault> {
        let Self {
            prompt,
            completion,
            system,
            text,
            messages,
        } = self;
        let kinds = [completion.is_some(), text.is_some(), messages.is_some()]
            .iter()
            .filter(|given| **given)
            .count();
        if kinds != 1 || (prompt.is_some() || system.is_some()) && completion.is_none() {
            let rule = "prompt and completion (with a system message or without), text alone, or messages alone";
            let given = serde_json::to_string(self).unwrap_or_default();
            return vec![Fault::new("columns", rule, given)];
        }
        let mut rules = Rules::of("columns");
        for (key, value) in [
            ("prompt", prompt),
            ("completion", completion),
            ("system", system),
            ("text", text),
            ("messages", messages),
        ] {
            let named = value.as_deref() != Some("");
            rules.check(named, key, "the name of a key, or a pattern", "\"\"");
        }
        rules.faults
    }
}
