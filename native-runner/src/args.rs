//! Command line of `tabtune`: its subcommands and the options that several of them share.

mod asking;
mod bench;
mod data;
mod estimate;
mod model_io;
mod schema;
mod settings;
mod tokenizer;
mod train;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tabtune::config::BaseStorage;
use tabtune::device::DeviceKind;

pub use asking::{ChatArgs, DetokenizeArgs, GenerateArgs, ScoreArgs};
pub use bench::{BenchArgs, BenchSubject, GpuArgs};
pub use data::{DataArgs, DataCommandArgs};
pub use estimate::EstimateArgs;
pub use model_io::{
    AdapterAction, AdapterArgs, CardArgs, ConvertArgs, DeltaAction, DeltaArgs, DeltaUseArgs,
    ExportArgs, OutputArgs, RequestArgs, VerifyArgs,
};
pub use schema::{given_option, has_settings};
pub use settings::{ReadingArgs, SettingsArgs, module_names};
pub use tokenizer::{TokenizerAction, TokenizerArgs, TrainTokenizerArgs};
pub use train::{TrainArgs, Verify};

use crate::error::{Result, RunError};

/// Trains, evaluates and runs language models with the same crate as the browser.
#[derive(Debug, Parser)]
#[command(name = "tabtune", version, about, propagate_version = true)]
pub struct Cli {
    /// Subcommand to run.
    #[command(subcommand)]
    pub command: Command,
    /// Print one JSON object per line on stdout, and nothing else.
    #[arg(long, global = true)]
    pub json: bool,
}

/// Subcommands of `tabtune`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train or fine-tune a model.
    Train(Box<TrainArgs>),
    /// Show how training data is read: forms, rows, tokens, lengths, warnings, and the first examples token by token.
    Data(Box<DataCommandArgs>),
    /// Print the mean loss, the perplexity and the accuracy of a model on a text or on rows.
    Evaluate(EvaluateArgs),
    /// Estimate the device memory of a training run, by purpose, and list the device limits that it stays within. Opens no device.
    Estimate(Box<EstimateArgs>),
    /// Continue a text.
    Generate(GenerateArgs),
    /// Answer messages in a conversation that is written by the model's chat template.
    Chat(Box<ChatArgs>),
    /// Print the probability of each token of a text or a conversation.
    Score(ScoreArgs),
    /// Print the token ids of a text.
    Tokenize(TokenizeArgs),
    /// Print the text of token ids.
    Detokenize(DetokenizeArgs),
    /// Make a tokenizer for a new model.
    Tokenizer(TokenizerArgs),
    /// Print the learning rates that a new run plans, one line per step.
    Schedule(ScheduleArgs),
    /// Show the contents of model files and whether they are sound. A file that is refused is a result, with its reason, and no failure of the
    /// command.
    Inspect(InspectArgs),
    /// Measure this device.
    Bench(BenchArgs),
    /// Write the weights of a checkpoint for other programs.
    Export(Box<ExportArgs>),
    /// Write a model in another format, without training.
    Convert(Box<ConvertArgs>),
    /// Write the exact difference of two models, apply it, or remove it again.
    Delta(DeltaArgs),
    /// Merge a LoRA adapter into its base, or extract one from two models.
    Adapter(Box<AdapterArgs>),
    /// Recompute the digests and figures that a receipt states, and compare them.
    Verify(VerifyArgs),
    /// Run reference cases by `tabtune-dev check`, for instructions that name this program.
    #[command(hide = true, disable_help_flag = true)]
    Check {
        /// Arguments of `tabtune-dev check`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
}

/// Device that computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DeviceName {
    /// WGSL on Vulkan, Metal or DX12.
    Wgpu,
    /// The CPU, with the CPU implementations (twins) of the kernels.
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

/// Options for an adapter that stays separate from the model, and for the storage of the model's weights.
#[derive(Debug, Args)]
pub struct ApartArgs {
    /// Folder of a PEFT LoRA adapter, or checkpoint folder of a run that trains one. The adapter is not merged into the weights.
    #[arg(long, value_name = "DIR")]
    pub adapter: Option<PathBuf>,
    /// Storage of the weights of --model on the device [default: f32; with --adapter, stored].
    #[arg(long, value_enum, value_name = "S")]
    pub base_storage: Option<StorageName>,
}

/// Arguments of `evaluate`.
#[derive(Debug, Args)]
pub struct EvaluateArgs {
    /// GGUF file, safetensors folder or checkpoint folder.
    #[arg(long, value_name = "PATH")]
    pub model: PathBuf,
    #[command(flatten)]
    pub data: DataArgs,
    /// Window length in tokens. Of a text: tokens per window, each of which but the first is predicted [default: the model's context, at
    /// most 512]. Of rows: tokens that are read per sequence, each followed by a predicted one [default: the model's context].
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u64).range(2..))]
    pub seq_len: Option<u64>,
    /// Number of rows that are evaluated at once.
    #[arg(long, value_name = "B", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..))]
    pub batch_size: u64,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Number of tokens to evaluate, from the start of the data [default: all].
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u64>,
    /// Let a token attend to its own document only, as `train --document-mask` does.
    #[arg(long)]
    pub document_mask: bool,
    #[command(flatten)]
    pub apart: ApartArgs,
    /// Device to compute on.
    #[arg(long, value_enum, default_value = "wgpu")]
    pub device: DeviceName,
}

/// Arguments of `tokenize`.
#[derive(Debug, Args)]
pub struct TokenizeArgs {
    /// GGUF file, safetensors folder or checkpoint folder.
    #[arg(long, value_name = "PATH")]
    pub model: PathBuf,
    /// Text to tokenize.
    #[arg(long, value_name = "TEXT")]
    pub text: String,
}

/// Arguments of `schedule`.
#[derive(Debug, Args)]
pub struct ScheduleArgs {
    /// JSON file of settings, with the keys of TrainConfig (crate/SETTINGS.md).
    #[arg(long, value_name = "FILE")]
    pub train_config: PathBuf,
    /// Number of steps to show [default: the steps of the run].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub steps: Option<u64>,
}

/// Arguments of `inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// Files to inspect, or folders of them.
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// Format of the files: safetensors, gguf, index, peft or json [default: by the ending of the name].
    #[arg(long = "as", value_name = "FORMAT")]
    pub format: Option<String>,
    /// Read the values of every tensor too, not only the headers.
    #[arg(long)]
    pub read: bool,
    /// Report on each path as a whole: its contract, the formats it can be exported to, and the bytes that training it needs.
    #[arg(long)]
    pub contract: bool,
    /// Report the plan of an import of each path instead: the tensors that the options below take, each with the position of its bytes. Only
    /// headers are read.
    #[arg(long, conflicts_with_all = ["contract", "read", "format"])]
    pub plan: bool,
    /// With --plan: tensor to read, by its new name. Only its bytes are read.
    #[arg(long, value_name = "NAME", requires = "plan")]
    pub tensor: Option<String>,
    /// With --tensor: file to create with its bytes as they are stored.
    #[arg(long, value_name = "FILE", requires = "tensor")]
    pub to: Option<PathBuf>,
    /// With --plan: names of the tensors of a GGUF file.
    #[arg(
        long,
        value_enum,
        value_name = "NAMES",
        default_value = "source",
        requires = "plan"
    )]
    pub names: NamesOf,
    /// With --contract: folder of a PEFT LoRA adapter that is merged into the model.
    #[arg(long, value_name = "DIR", requires = "contract")]
    pub merge_adapter: Option<PathBuf>,
    #[command(flatten)]
    pub request: RequestArgs,
}

/// Names of the tensors of a GGUF file.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum NamesOf {
    /// The names in the file.
    Source,
    /// Hugging Face's, with rows and columns in its order.
    Hf,
}

/// Storage of a model's weights on the device.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum StorageName {
    /// As in the file.
    Stored,
    /// bfloat16, 2 bytes per value.
    Bf16,
    /// float32, 4 bytes per value.
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

/// Reads the arguments of this process. Returns `None` after the help or the version was printed.
///
/// # Errors
/// `cli.usage` for arguments that clap refuses; `cli.stdout` if the help cannot be printed.
pub fn read<C: Parser>() -> Result<Option<C>> {
    match C::try_parse() {
        Ok(cli) => Ok(Some(cli)),
        Err(error) if !error.use_stderr() => {
            match error.print() {
                // Whoever reads the help has seen enough of it.
                Err(closed) if closed.kind() == std::io::ErrorKind::BrokenPipe => {}
                printed => printed.map_err(RunError::Stdout)?,
            }
            Ok(None)
        }
        Err(error) => {
            let text = error.to_string();
            Err(RunError::Usage(
                text.trim_start_matches("error: ")
                    .split("\n\nUsage:")
                    .next()
                    .unwrap_or(&text)
                    .trim()
                    .to_string(),
            ))
        }
    }
}
