//! Options for training data, and the arguments of `tabtune data`.

use std::path::PathBuf;

use clap::Args;

use super::SettingsArgs;

/// Data files of a command.
#[derive(Debug, Clone, Args)]
pub struct DataArgs {
    /// Data files: text, rows (JSON lines, a JSON array, CSV or TSV) or token ids (.tokens), recognised by their contents, also when compressed
    /// with gzip. A folder means its .txt and .md files, one document each. Rows are chats ({"messages": […]}), prompts with completions,
    /// instructions, texts or token ids.
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    pub data: Vec<PathBuf>,
}

/// Arguments of `data`.
#[derive(Debug, Args)]
pub struct DataCommandArgs {
    /// Data files, as `train --data` takes them.
    #[arg(value_name = "FILE", required = true)]
    pub data: Vec<PathBuf>,
    /// GGUF file, or folder of the model that is to learn the data: its tokenizer and chat template are used. Without a model only forms and
    /// rows are shown.
    #[arg(long, value_name = "PATH")]
    pub model: Option<PathBuf>,
    /// Chat template, as `train --chat-template` takes it.
    #[arg(long, value_name = "FILE", requires = "model")]
    pub chat_template: Option<PathBuf>,
    /// Data files for evaluation, as `train --validation-data` takes them.
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "model")]
    pub validation_data: Vec<PathBuf>,
    /// Number of examples to show token by token.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub show: usize,
    #[command(flatten)]
    pub settings: SettingsArgs,
}
