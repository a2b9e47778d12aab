//! Arguments of the commands that query a model: `generate`, `chat`, `score`, `detokenize`.

use std::path::PathBuf;

use clap::Args;
use tabtune::generate::GenerateConfig;
use tabtune::generate::score::ScoreConfig;

use super::{ApartArgs, DeviceName};

/// Options that control how tokens are sampled.
#[derive(Debug, Args)]
pub struct SamplingArgs {
    /// Maximum number of tokens to generate.
    #[arg(long, value_name = "N", default_value_t = GenerateConfig::default().max_tokens)]
    pub max_tokens: usize,
    /// Sampling temperature; 0 = always the most likely token.
    #[arg(long, value_name = "X", default_value_t = GenerateConfig::default().temperature, allow_negative_numbers = true)]
    pub temperature: f64,
    /// Sample only from the K most likely tokens; 0 = all.
    #[arg(long, value_name = "K", default_value_t = GenerateConfig::default().top_k)]
    pub top_k: usize,
    /// Sample only from the most likely tokens whose probabilities add up to P; 1 = all.
    #[arg(long, value_name = "P", default_value_t = GenerateConfig::default().top_p, allow_negative_numbers = true)]
    pub top_p: f64,
    /// Seed of the random draws.
    #[arg(long, value_name = "S", default_value_t = GenerateConfig::default().seed)]
    pub seed: u64,
    /// Show the K most likely tokens at each position; 0 = none.
    #[arg(long, value_name = "K", default_value_t = GenerateConfig::default().top_logprobs)]
    pub top_logprobs: usize,
}

impl SamplingArgs {
    /// Returns the options without an effect, because the temperature is 0.
    pub fn idle(&self) -> Vec<&'static str> {
        let usual = GenerateConfig::default();
        let given = [
            ("--top-k", self.top_k != usual.top_k),
            ("--top-p", self.top_p != usual.top_p),
            ("--seed", self.seed != usual.seed),
        ];
        given
            .into_iter()
            .filter(|(_, given)| *given && self.temperature == 0.0)
            .map(|(option, _)| option)
            .collect()
    }
}

impl From<&SamplingArgs> for GenerateConfig {
    fn from(args: &SamplingArgs) -> Self {
        Self {
            max_tokens: args.max_tokens,
            temperature: args.temperature,
            top_k: args.top_k,
            top_p: args.top_p,
            seed: args.seed,
            top_logprobs: args.top_logprobs,
        }
    }
}

/// Arguments of `generate`.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// GGUF file, safetensors folder or checkpoint folder.
    #[arg(long, value_name = "PATH")]
    pub model: PathBuf,
    #[command(flatten)]
    pub apart: ApartArgs,
    /// Text to continue.
    #[arg(long, value_name = "TEXT")]
    pub prompt: String,
    #[command(flatten)]
    pub sampling: SamplingArgs,
    /// Device to compute on.
    #[arg(long, value_enum, default_value = "wgpu")]
    pub device: DeviceName,
}

/// Arguments of `chat`.
#[derive(Debug, Args)]
pub struct ChatArgs {
    /// GGUF file, safetensors folder or checkpoint folder. Its chat template formats the conversation.
    #[arg(long, value_name = "PATH")]
    pub model: PathBuf,
    #[command(flatten)]
    pub apart: ApartArgs,
    /// With --adapter: answer each message by the model without the adapter as well, in a conversation of its own.
    #[arg(long, requires = "adapter")]
    pub base: bool,
    /// System message at the beginning of the conversation [default: none].
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,
    /// User messages, answered one after the other [default: each line of stdin].
    #[arg(long, value_name = "TEXT", num_args = 1..)]
    pub message: Vec<String>,
    /// JSON file with a list of tools, which the chat template describes to the model.
    #[arg(long, value_name = "FILE")]
    pub tools: Option<PathBuf>,
    #[command(flatten)]
    pub sampling: SamplingArgs,
    /// Device to compute on.
    #[arg(long, value_enum, default_value = "wgpu")]
    pub device: DeviceName,
}

/// Arguments of `score`.
#[derive(Debug, Args)]
pub struct ScoreArgs {
    /// GGUF file, safetensors folder or checkpoint folder.
    #[arg(long, value_name = "PATH")]
    pub model: PathBuf,
    #[command(flatten)]
    pub apart: ApartArgs,
    /// Text to score, with the beginning-of-text before it where `generate` puts one before a prompt.
    #[arg(
        long,
        value_name = "TEXT",
        required_unless_present = "messages",
        conflicts_with = "messages"
    )]
    pub text: Option<String>,
    /// JSON file to score as the chat template writes it: a list of messages, or an object with messages, tools, documents and
    /// chat_template_kwargs.
    #[arg(long, value_name = "FILE")]
    pub messages: Option<PathBuf>,
    /// With --messages: end with the opening of an assistant's turn.
    #[arg(long, requires = "messages", conflicts_with = "text")]
    pub generation: bool,
    /// Show the N most likely tokens at each position, at most 20; 0 = none.
    #[arg(long, value_name = "N", default_value_t = ScoreConfig::default().top)]
    pub top: usize,
    /// Device to compute on.
    #[arg(long, value_enum, default_value = "wgpu")]
    pub device: DeviceName,
}

/// Arguments of `detokenize`.
#[derive(Debug, Args)]
pub struct DetokenizeArgs {
    /// GGUF file, safetensors folder or checkpoint folder.
    #[arg(long, value_name = "PATH")]
    pub model: PathBuf,
    /// Token ids to turn into text.
    #[arg(long, value_name = "ID", num_args = 1.., required = true)]
    pub ids: Vec<u32>,
}
