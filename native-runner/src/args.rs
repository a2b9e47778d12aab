//! The command line.

mod asking;
mod data;
mod estimate;
mod model_io;
mod settings;
mod train;

use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use tabtune::config::BaseStorage;
use tabtune::device::DeviceKind;

pub use asking::{ChatArgs, DetokenizeArgs, GenerateArgs, ScoreArgs};
pub use data::{DataArgs, DataCommandArgs, ReadingArgs};
pub use estimate::EstimateArgs;
pub use model_io::{
    AdapterAction, AdapterArgs, CardArgs, ConvertArgs, DeltaAction, DeltaArgs, DeltaUse, ExportArgs, ExportFormat, OutputArgs, RequestArgs,
    VerifyArgs,
};
pub use settings::SettingsArgs;
pub use train::{TrainArgs, Verify};

use crate::error::{Result, RunError};

/// Trains, evaluates and runs language models with the same crate as the browser.
#[derive(Debug, Parser)]
#[command(name = "tabtune", version, about, propagate_version = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Print one JSON object per line on stdout, and nothing else.
    #[arg(long, global = true)]
    pub json: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train or fine-tune a model.
    Train(Box<TrainArgs>),
    /// Show what data are learned as: forms, rows, tokens, lengths, warnings, and the first examples token by token.
    Data(Box<DataCommandArgs>),
    /// Print the mean loss, perplexity and accuracy of a text, or of rows.
    Evaluate(EvaluateArgs),
    /// Tell what a training run needs on the device, by purpose, and within which limits it stays. Opens no device.
    Estimate(Box<EstimateArgs>),
    /// Continue a text.
    Generate(GenerateArgs),
    /// Answer messages in a conversation, as the model's chat template writes it.
    Chat(Box<ChatArgs>),
    /// Print the probability of each token of a text or a conversation.
    Score(ScoreArgs),
    /// Print the token ids of a text.
    Tokenize(TokenizeArgs),
    /// Print the text of token ids.
    Detokenize(DetokenizeArgs),
    /// Print the learning rates that a new run plans, one per step.
    Schedule(ScheduleArgs),
    /// Show what is in model files, and whether they are sound.
    Inspect(InspectArgs),
    /// Compare with reference numbers.
    Check(CheckArgs),
    /// Replay recorded trajectories through the optimizers and schedules.
    Replay(ReplayArgs),
    /// Measure time and memory on this device.
    Bench(crate::commands::bench::BenchArgs),
    /// Write the weights of a checkpoint for other programs.
    Export(Box<ExportArgs>),
    /// Write a model in another format, without training.
    Convert(Box<ConvertArgs>),
    /// Write the exact difference of two models, apply it, or remove it.
    Delta(DeltaArgs),
    /// Merge a LoRA adapter into its base, or make one of two models.
    Adapter(Box<AdapterArgs>),
    /// Recompute what a receipt states.
    Verify(VerifyArgs),
    /// Print settings, reports and codes as JSON, for `npm run generate`.
    #[command(hide = true)]
    Schema,
}

/// The device that computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DeviceName {
    /// WGSL on Vulkan, Metal or DX12.
    Wgpu,
    /// The CPU, with the kernels' twins.
    Cpu,
}

impl From<DeviceName> for DeviceKind {
    fn from(name: DeviceName) -> Self {
        match name {
            DeviceName::Wgpu => DeviceKind::Wgpu,
            DeviceName::Cpu => DeviceKind::Cpu,
        }
    }
}

/// An adapter beside the model, and how the model's weights are kept.
#[derive(Debug, Args)]
pub struct ApartArgs {
    /// Folder of a LoRA adapter of PEFT, or checkpoint folder of a run that trains one. It is not merged into the weights.
    #[arg(long, value_name = "DIR")]
    pub adapter: Option<PathBuf>,
    /// How the weights of --model are stored on the device [default: f32; with --adapter, as they are in the file].
    #[arg(long, value_enum, value_name = "S")]
    pub base_storage: Option<StorageName>,
}

/// `evaluate`.
#[derive(Debug, Args)]
pub struct EvaluateArgs {
    /// GGUF file, safetensors folder or checkpoint folder.
    #[arg(long, value_name = "PATH")]
    pub model: PathBuf,
    #[command(flatten)]
    pub data: DataArgs,
    /// Tokens of one window of a text; every position but a window's first counts [default: the model's context, at most 512]. Of rows T as of
    /// a run: so many tokens are read, and what follows each is predicted [default: all that the model's context holds].
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u64).range(2..))]
    pub seq_len: Option<u64>,
    /// Rows that are evaluated at once.
    #[arg(long, value_name = "B", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..))]
    pub batch_size: u64,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Number of tokens of the text to use, from its start [default: all].
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u64>,
    /// Let a token see only its own document, as `train --document-mask` does.
    #[arg(long)]
    pub document_mask: bool,
    #[command(flatten)]
    pub apart: ApartArgs,
    /// Where to compute.
    #[arg(long, value_enum, default_value = "wgpu")]
    pub device: DeviceName,
}

/// `tokenize`.
#[derive(Debug, Args)]
pub struct TokenizeArgs {
    /// GGUF file, safetensors folder or checkpoint folder.
    #[arg(long, value_name = "PATH")]
    pub model: PathBuf,
    /// Text.
    #[arg(long, value_name = "TEXT")]
    pub text: String,
}

/// `schedule`.
#[derive(Debug, Args)]
pub struct ScheduleArgs {
    /// Settings as JSON, as `train` takes them (crate/SETTINGS.md).
    #[arg(long, value_name = "FILE")]
    pub train_config: PathBuf,
    /// Number of steps to show [default: those of the run].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=10_000_000))]
    pub steps: Option<u64>,
}

/// `inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// Files, or folders of them.
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// Format: safetensors, gguf, index, peft or json [default: by the name's ending].
    #[arg(long = "as", value_name = "FORMAT")]
    pub format: Option<String>,
    /// Read the values of every tensor as well.
    #[arg(long)]
    pub read: bool,
    /// Tell what each path is as a whole: its contract, what it can become, and whether it can be trained in how many bytes.
    #[arg(long)]
    pub contract: bool,
    /// With --contract, folder of a LoRA adapter of PEFT that is merged into the model.
    #[arg(long, value_name = "DIR", requires = "contract")]
    pub merge_adapter: Option<PathBuf>,
    #[command(flatten)]
    pub request: RequestArgs,
}

/// `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// File of cases.
    #[arg(value_name = "ORACLE.json")]
    pub oracle: PathBuf,
    /// Folder that the paths in the cases are relative to.
    #[arg(long, value_name = "DIR")]
    pub assets: PathBuf,
    /// Where to compute.
    #[arg(long, value_enum, default_value = "wgpu")]
    pub device: DeviceName,
    /// How the base beside an adapter is stored.
    #[arg(long, value_enum, default_value = "stored")]
    pub base_storage: StorageName,
    /// Only the cases with these ids, or whose ids start with them.
    #[arg(long, value_name = "ID", num_args = 1..)]
    pub only: Vec<String>,
}

/// How the base beside an adapter is stored.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum StorageName {
    /// As in the file.
    Stored,
    /// 2 bytes a value.
    Bf16,
    /// 4 bytes a value.
    F32,
}

impl From<StorageName> for BaseStorage {
    fn from(name: StorageName) -> Self {
        match name {
            StorageName::Stored => Self::Stored,
            StorageName::Bf16 => Self::Bf16,
            StorageName::F32 => Self::F32,
        }
    }
}

/// `replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Folder of vector files (.json).
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Where to compute.
    #[arg(long, value_enum, default_value = "wgpu")]
    pub device: DeviceName,
}

impl Cli {
    /// Reads the arguments; `None` after help or version was shown.
    pub fn read() -> Result<Option<Self>> {
        let parsed = Self::command().try_get_matches().and_then(|matches| Self::from_arg_matches(&matches));
        match parsed {
            Ok(cli) => Ok(Some(cli)),
            Err(error) if !error.use_stderr() => {
                error.print().map_err(RunError::Stdout)?;
                Ok(None)
            }
            Err(error) => {
                let text = error.to_string();
                Err(RunError::Usage(text.trim_start_matches("error: ").split("\n\nUsage:").next().unwrap_or(&text).trim().to_string()))
            }
        }
    }
}
