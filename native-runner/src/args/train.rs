//! Arguments of `tabtune train`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

use super::{DataArgs, DeviceName, SettingsArgs};

/// Arguments of `train`.
#[derive(Debug, Clone, Args)]
#[command(group(ArgGroup::new("start").required(true).multiple(true).args(["model", "config", "resume", "state"])))]
pub struct TrainArgs {
    /// GGUF file, safetensors folder, checkpoint folder or hf:owner/name (a copy that huggingface_hub keeps) to start from; with --resume, the base of the adapter that is continued.
    #[arg(long, value_name = "PATH")]
    pub model: Option<PathBuf>,
    /// Hugging Face config.json of a model to train from scratch. Without --tokenizer there is one token for each character of the data, in
    /// code point order. The tokenizer determines vocab_size; a vocab_size in the file is ignored.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "resume", "lora"])]
    pub config: Option<PathBuf>,
    /// With --config: tokenizer.json of the new model, such as that of tabtune tokenizer train. <|endoftext|> ends a text, if it is a special
    /// token of it.
    #[arg(long, value_name = "FILE")]
    pub tokenizer: Option<PathBuf>,
    /// Continue a run from its checkpoint folder, or from the .tabtune file that the browser exports. Needs the same --data; settings that
    /// contradict the checkpoint are refused without --override.
    #[arg(long, value_name = "PATH", conflicts_with = "lora")]
    pub resume: Option<PathBuf>,
    /// Continue from a state: a folder or file with the weights, groups and optimizer state of a run, in any form that tabtune writes. Its
    /// groups determine optimizers, rates and schedule; settings that contradict them are refused without --override. --model names the
    /// model if the state has no configuration.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["config", "resume", "adapter", "merge_adapter"])]
    pub state: Option<PathBuf>,
    /// With --resume and --model: extent to which the base is compared with the one that the checkpoint names [default: full].
    #[arg(long, value_enum, value_name = "VERIFY")]
    pub verify: Option<Verify>,
    /// Accept these settings although the checkpoint or the state has others: keys of TrainConfig (learning_rate), groups of keys (optimizer), or all.
    /// With data: continue with other data, whose order then starts from the beginning.
    #[arg(long = "override", value_name = "KEY", num_args = 1.., value_delimiter = ',')]
    pub overrides: Vec<String>,
    /// Folder of a PEFT LoRA adapter to merge into the weights of --model before training begins.
    #[arg(long, value_name = "DIR")]
    pub merge_adapter: Option<PathBuf>,
    /// Let the adapter's embedding and head replace those of the model although they have more rows: tokens were added before it was trained.
    #[arg(long)]
    pub resize_vocabulary: bool,
    /// Folder of a PEFT LoRA adapter to continue training, separate from --model. Its rank, alpha and targets apply.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["merge_adapter", "lora"])]
    pub adapter: Option<PathBuf>,
    /// Chat template for rows of messages, in place of the model's: a Jinja file, or chatml.
    #[arg(long, value_name = "FILE")]
    pub chat_template: Option<PathBuf>,
    /// Start even if weights of --model are NaN or infinite.
    #[arg(long)]
    pub allow_non_finite: bool,
    #[command(flatten)]
    pub data: DataArgs,
    /// Data files for evaluation, in place of a share of --data.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub validation_data: Vec<PathBuf>,
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// Device to compute on.
    #[arg(long, value_enum, default_value = "wgpu")]
    pub device: DeviceName,
    /// Treat a software adapter as a GPU, so that it runs the kernels of GPUs. `tests/lab/same-bits.mjs` compares the two.
    #[arg(long, hide = true)]
    pub as_gpu: bool,
    /// Checkpoint folder: new, empty, or that of an earlier checkpoint, which is replaced; other files in it are left alone. However the run
    /// ends, its last complete step is saved.
    #[arg(long = "to", alias = "out", value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Save every N steps, as well as at the end [default: at the end only].
    #[arg(long, value_name = "N", requires = "out", value_parser = clap::value_parser!(u64).range(1..))]
    pub save_every: Option<u64>,
    /// Evaluate on the data kept for evaluation every N steps, as well as at the end [default: never].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub eval_every: Option<u64>,
    /// Folder of a second checkpoint: the step with the lowest evaluation loss, saved whenever an evaluation gives the lowest loss so far. A
    /// new run needs a new or empty folder; with --resume the losses are compared with that of the checkpoint in it, which must be one of
    /// the same run and data.
    #[arg(long, value_name = "DIR")]
    pub keep_best: Option<PathBuf>,
    /// Save and stop after this step, as if interrupted; the planned length of the run (--steps) is unchanged.
    #[arg(long, value_name = "STEP")]
    pub stop_at: Option<u64>,
    /// Time each kernel and print a table at the end. Each kernel is submitted on its own, so steps take longer.
    #[arg(long)]
    pub profile: bool,
}

/// Extent to which a base is compared with a checkpoint at a resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Verify {
    /// All bytes of the base.
    Full,
    /// Sizes and headers only; later checkpoints state that the rest was not compared.
    Header,
}
