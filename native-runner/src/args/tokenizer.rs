//! Arguments of `tabtune tokenizer`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `tokenizer`.
#[derive(Debug, Args)]
pub struct TokenizerArgs {
    /// Operation.
    #[command(subcommand)]
    pub action: TokenizerAction,
}

/// Operations on tokenizers.
#[derive(Debug, Subcommand)]
pub enum TokenizerAction {
    /// Learn a vocabulary for a new model from texts: byte-level byte pair encoding, as a tokenizer.json. The options --config and --tokenizer of
    /// train take it.
    Train(TrainTokenizerArgs),
}

/// Arguments of `tokenizer train`.
#[derive(Debug, Args)]
pub struct TrainTokenizerArgs {
    /// Data files, as `train --data` takes them. The texts of rows are learned, and those of the messages of chats.
    #[arg(value_name = "DATA", required = true)]
    pub data: Vec<PathBuf>,
    /// Number of tokens, with the special ones and those of the 256 bytes. A small text may yield fewer.
    #[arg(long, value_name = "N", default_value_t = 8192)]
    pub vocab_size: usize,
    /// Minimum number of times that a pair must occur to become a token.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub min_frequency: u64,
    /// Further tokens that texts have whole, such as those of a chat template. <|endoftext|>, which ends a text, comes first.
    #[arg(long, value_name = "TEXT", num_args = 1..)]
    pub special: Vec<String>,
    /// File to create, which must not exist.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}
