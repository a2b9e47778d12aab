//! Settings by which data are read.

use serde::{Deserialize, Serialize};

use super::TrainConfig;
use crate::error::Fault;

/// The form of a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Plain text, one stream of tokens.
    Text,
    /// One JSON object a line.
    Jsonl,
    /// A JSON array of objects, an object with one array of objects, or a single row.
    Json,
    /// Records of fields between commas or semicolons (RFC 4180), with their names in the first one.
    Csv,
    /// The same between tabs.
    Tsv,
    /// Token ids, u32 little endian, one stream. No tokenizer is needed.
    Tokens,
}

impl Form {
    /// The word for it in settings and reports.
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

/// The columns of a row, by the names that tabtune knows. A value is the name of a key, or a pattern with names in braces:
/// `"Question: {question}\nAnswer:"`; `{{` and `}}` are braces.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Columns {
    /// Text before the answer, which is read and not learned.
    pub prompt: Option<String>,
    /// The answer, which is learned.
    pub completion: Option<String>,
    /// A system message before a prompt.
    pub system: Option<String>,
    /// A document, all of which is learned.
    pub text: Option<String>,
    /// A list of messages.
    pub messages: Option<String>,
}

/// What becomes of a row that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OnBadRow {
    /// The data are refused; all such rows are counted, and the first hundred reported.
    #[default]
    Stop,
    /// It is left out, and reported.
    Skip,
}

/// The messages of a chat that are learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum LossOn {
    /// Each answer of the assistant.
    #[default]
    Assistant,
    /// The last answer of the assistant.
    Last,
    /// The whole text, the user's messages too.
    All,
}

/// The rows that are kept for evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ValidationRows {
    /// Rows drawn by the seed.
    #[default]
    Random,
    /// The last rows, for data in an order of time.
    Last,
}

impl ValidationRows {
    /// Checkpoints without the setting kept the last rows.
    pub(super) fn before_it_was_set() -> Self {
        Self::Last
    }
}

/// What becomes of an example that is longer than a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OnLong {
    /// Its end is left out, and with it the token that ends it.
    #[default]
    Cut,
    /// It is left out.
    Skip,
    /// A document goes into several sequences, each of which begins where the one before ends; other examples are cut.
    Split,
}

/// The settings of a run by which its data become examples.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DataSettings {
    /// The form of the files; `None` finds it by their contents.
    pub form: Option<Form>,
    /// The columns of a row.
    pub columns: Option<Columns>,
    /// What becomes of rows that cannot be used.
    pub on_bad_row: OnBadRow,
    /// The messages that are learned.
    pub loss_on: LossOn,
    /// The date that chat templates see, YYYY-MM-DD.
    pub chat_date: Option<String>,
    /// Share kept for evaluation.
    pub validation_fraction: f64,
    /// The rows that are kept.
    pub validation_rows: ValidationRows,
    /// By which they are drawn.
    pub seed: u64,
    /// The files are the beginnings of longer ones: the last row of each, which may be cut, is left out.
    pub partial: bool,
}

impl TrainConfig {
    /// The settings by which data are read.
    pub fn data_settings(&self) -> DataSettings {
        DataSettings {
            form: self.form,
            columns: self.columns.clone(),
            on_bad_row: self.on_bad_row,
            loss_on: self.loss_on,
            chat_date: self.chat_date.clone(),
            validation_fraction: self.validation_fraction,
            validation_rows: self.validation_rows,
            seed: self.seed,
            partial: false,
        }
    }
}

impl Columns {
    /// The rules that these columns break.
    pub(super) fn faults(&self) -> Vec<Fault> {
        let Self { prompt, completion, system, text, messages } = self;
        let kinds = [completion.is_some(), text.is_some(), messages.is_some()].iter().filter(|given| **given).count();
        if kinds != 1 || (prompt.is_some() || system.is_some()) && completion.is_none() {
            let rule = "prompt and completion (with a system message or without), text alone, or messages alone";
            let given = serde_json::to_string(self).unwrap_or_default();
            return vec![Fault::new("columns", rule, given)];
        }
        let named = [("prompt", prompt), ("completion", completion), ("system", system), ("text", text), ("messages", messages)];
        let empty = named.into_iter().filter(|(_, value)| value.as_deref() == Some(""));
        empty.map(|(key, _)| Fault::new(format!("columns.{key}"), "the name of a key, or a pattern", "\"\"")).collect()
    }
}
