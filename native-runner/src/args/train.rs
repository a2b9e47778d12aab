//! The options of `tabtune train`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

use super::{DataArgs, DeviceName, SettingsArgs};

/// `train`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("start").required(true).multiple(true).args(["model", "config", "resume"])))]
pub struct TrainArgs {
    /// GGUF file, safetensors folder or checkpoint folder to start from; with --resume, the base of the adapter that goes on.
    #[arg(long, value_name = "PATH")]
    pub model: Option<PathBuf>,
    /// Hugging Face config.json of a model to train from scratch. The tokenizer is made of the characters of the data file, in code
    /// point order, and determines vocab_size; a vocab_size in the file is ignored.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "resume", "lora"])]
    pub config: Option<PathBuf>,
    /// Continue a run from its checkpoint folder, or from the .tabtune file that the browser exports. Needs the same --data; settings that contradict the checkpoint are refused without --override.
    #[arg(long, value_name = "PATH", conflicts_with = "lora")]
    pub resume: Option<PathBuf>,
    /// How much of the base in --model is compared with the checkpoint: all pieces, or the sizes and headers alone, which later checkpoints say.
    #[arg(long, value_enum, default_value = "full", requires = "resume")]
    pub verify: Verify,
    /// Accept these settings although the checkpoint has others: keys of TrainConfig (learning_rate), groups of keys (optimizer), or all;
    /// data, to continue with other data, whose order then starts from the beginning.
    #[arg(long = "override", value_name = "KEY", num_args = 1.., requires = "resume")]
    pub overrides: Vec<String>,
    /// Folder of a LoRA adapter of PEFT that is merged into the weights of --model before training begins.
    #[arg(long, value_name = "DIR", requires = "model")]
    pub merge_adapter: Option<PathBuf>,
    /// Let the adapter's embedding and head, of more rows than the model's, take their place: tokens were added before it was trained.
    #[arg(long, requires = "merge_adapter")]
    pub resize_vocabulary: bool,
    /// Folder of a LoRA adapter of PEFT that is trained on beside --model; its rank, alpha and targets hold.
    #[arg(long, value_name = "DIR", requires = "model", conflicts_with_all = ["merge_adapter", "resume", "lora"])]
    pub adapter: Option<PathBuf>,
    /// Start even if weights of --model are NaN or infinite.
    #[arg(long, requires = "model")]
    pub allow_non_finite: bool,
    #[command(flatten)]
    pub data: DataArgs,
    /// Files that are evaluated, in place of a share of --data.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub validation_data: Vec<PathBuf>,
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// Where to compute.
    #[arg(long, value_enum, default_value = "wgpu")]
    pub device: DeviceName,
    /// Treat a software adapter as a GPU: the kernels of GPUs run on it. `tests/same-bits.mjs` compares them.
    #[arg(long, hide = true)]
    pub as_gpu: bool,
    /// Folder of the checkpoint: a new or empty one, or that of a checkpoint, which is replaced; other files in it stay. Whatever ends the run,
    /// its last whole step is saved.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Save every N steps, as well as at the end.
    #[arg(long, value_name = "N", requires = "out", value_parser = clap::value_parser!(u64).range(1..))]
    pub save_every: Option<u64>,
    /// Evaluate on the kept share of the data every N steps and at the end.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub eval_every: Option<u64>,
    /// Folder of another checkpoint: that of the evaluation with the lowest loss, saved whenever one is the lowest so far.
    #[arg(long, value_name = "DIR", requires = "eval_every")]
    pub keep_best: Option<PathBuf>,
    /// Save and stop after this step, as if interrupted; the planned length (--steps) is unchanged.
    #[arg(long, value_name = "STEP")]
    pub stop_at: Option<u64>,
    /// Time each kernel and print a table at the end. Each kernel is submitted by itself, so steps take longer.
    #[arg(long)]
    pub profile: bool,
}

/// How much of a base is compared at a resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Verify {
    /// All pieces.
    Full,
    /// Sizes and headers.
    Header,
}
