//! The options of data, and of `tabtune data`.

use std::path::PathBuf;

use clap::Args;

use super::SettingsArgs;

/// Files of data.
#[derive(Debug, Args)]
pub struct DataArgs {
    /// Text, rows (JSON lines, a JSON array, CSV or TSV) or token ids (.tokens): by their contents, also packed by gzip. A folder is its .txt and
    /// .md files, one document each. Rows are chats ({"messages": […]}), prompts with completions, instructions, texts or token ids.
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    pub data: Vec<PathBuf>,
}

/// How data are read.
#[derive(Debug, Args)]
pub struct ReadingArgs {
    /// Form of the data: text, jsonl, json, csv, tsv or tokens [default: by their contents].
    #[arg(long, value_name = "NAME")]
    pub form: Option<String>,
    /// Columns of the rows, where these have other names, as JSON: {"prompt": "question", "completion": "answer"}; a value with braces is a
    /// pattern, such as "Q: {question}\nA:".
    #[arg(long, value_name = "JSON")]
    pub columns: Option<String>,
    /// A row that cannot be used: stop, or skip.
    #[arg(long, value_name = "NAME")]
    pub on_bad_row: Option<String>,
    /// Messages of a chat that are learned: assistant, last, or all.
    #[arg(long, value_name = "NAME")]
    pub loss_on: Option<String>,
    /// Date that chat templates see [default: that of the day, where a template asks for it].
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub chat_date: Option<String>,
}

/// `data`.
#[derive(Debug, Args)]
pub struct DataCommandArgs {
    /// Files of data, as `train --data` takes them.
    #[arg(value_name = "FILE", required = true)]
    pub data: Vec<PathBuf>,
    /// GGUF file or folder of the model that is to learn them: its tokenizer and chat template. Without one, forms and rows alone are shown.
    #[arg(long, value_name = "PATH")]
    pub model: Option<PathBuf>,
    /// Examples that are shown token by token.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub show: usize,
    #[command(flatten)]
    pub settings: SettingsArgs,
}
