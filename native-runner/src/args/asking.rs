//! The arguments of the commands that ask a model: `generate`, `chat`, `score`, `detokenize`.

use std::path::PathBuf;

use clap::Args;
use tabtune::generate::GenerateConfig;
use tabtune::generate::score::ScoreConfig;

use super::{ApartArgs, DeviceName};

/// How tokens are chosen.
#[derive(Debug, Args)]
pub struct SamplingArgs {
    /// Number of tokens to add.
    #[arg(long, value_name = "N", default_value_t = GenerateConfig::default().max_tokens)]
    pub max_tokens: usize,
    /// Temperature; 0 = always the most likely token.
    #[arg(long, value_name = "X", default_value_t = GenerateConfig::default().temperature, allow_negative_numbers = true)]
    pub temperature: f64,
    /// Draw from the K most likely tokens; 0 = all.
    #[arg(long, value_name = "K", default_value_t = GenerateConfig::default().top_k)]
    pub top_k: usize,
    /// Draw from the most likely tokens whose probabilities add up to this; 1 = all.
    #[arg(long, value_name = "P", default_value_t = GenerateConfig::default().top_p, allow_negative_numbers = true)]
    pub top_p: f64,
    /// Seed of the draw.
    #[arg(long, value_name = "S", default_value_t = GenerateConfig::default().seed)]
    pub seed: u64,
    /// Show the K most likely tokens at each position.
    #[arg(long, value_name = "K", default_value_t = GenerateConfig::default().top_logprobs)]
    pub top_logprobs: usize,
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

/// `generate`.
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
    /// Where to compute.
    #[arg(long, value_enum, default_value = "wgpu")]
    pub device: DeviceName,
}

/// `chat`.
#[derive(Debug, Args)]
pub struct ChatArgs {
    /// GGUF file, safetensors folder or checkpoint folder; its chat template writes the conversation.
    #[arg(long, value_name = "PATH")]
    pub model: PathBuf,
    #[command(flatten)]
    pub apart: ApartArgs,
    /// With --adapter, answer each message by the model without it too, in a conversation of its own.
    #[arg(long, requires = "adapter")]
    pub base: bool,
    /// Message of the system that begins the conversation.
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,
    /// Messages of the user, one after the other [default: each line of stdin].
    #[arg(long, value_name = "TEXT", num_args = 1..)]
    pub message: Vec<String>,
    /// JSON list of the tools that the template tells the model of.
    #[arg(long, value_name = "FILE")]
    pub tools: Option<PathBuf>,
    #[command(flatten)]
    pub sampling: SamplingArgs,
    /// Where to compute.
    #[arg(long, value_enum, default_value = "wgpu")]
    pub device: DeviceName,
}

/// `score`.
#[derive(Debug, Args)]
pub struct ScoreArgs {
    /// GGUF file, safetensors folder or checkpoint folder.
    #[arg(long, value_name = "PATH")]
    pub model: PathBuf,
    #[command(flatten)]
    pub apart: ApartArgs,
    /// Text to score.
    #[arg(long, value_name = "TEXT", required_unless_present = "messages", conflicts_with = "messages")]
    pub text: Option<String>,
    /// JSON list of messages to score as the chat template writes them, or an object with messages, tools, documents and
    /// chat_template_kwargs.
    #[arg(long, value_name = "FILE")]
    pub messages: Option<PathBuf>,
    /// With --messages, let the template open the assistant's turn at the end.
    #[arg(long, requires = "messages")]
    pub generation: bool,
    /// Show the N most likely tokens at each position, at most 20.
    #[arg(long, value_name = "N", default_value_t = ScoreConfig::default().top)]
    pub top: usize,
    /// Where to compute.
    #[arg(long, value_enum, default_value = "wgpu")]
    pub device: DeviceName,
}

/// `detokenize`.
#[derive(Debug, Args)]
pub struct DetokenizeArgs {
    /// GGUF file, safetensors folder or checkpoint folder.
    #[arg(long, value_name = "PATH")]
    pub model: PathBuf,
    /// Token ids.
    #[arg(long, value_name = "ID", num_args = 1.., required = true)]
    pub ids: Vec<u32>,
}
