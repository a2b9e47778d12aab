//! The options of `tabtune train`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use super::{DeviceName, StorageName};

/// `train`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("start").required(true).multiple(true).args(["model", "config", "resume"])))]
pub struct TrainArgs {
    /// GGUF file, safetensors folder or checkpoint folder to start from; with --resume, the base of the adapter that goes on.
    #[arg(long, value_name = "PATH")]
    pub model: Option<PathBuf>,
    /// Hugging Face config.json of a model to train from scratch. The tokenizer is made of the characters of the data file, in code
    /// point order, and determines vocab_size; a vocab_size in the file is ignored.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "resume"])]
    pub config: Option<PathBuf>,
    /// Continue a run from its checkpoint folder, or from the .tabtune file that the browser exports. Needs the same --data; settings that contradict the checkpoint are refused without --override.
    #[arg(long, value_name = "PATH")]
    pub resume: Option<PathBuf>,
    /// Accept these settings although the checkpoint has others: keys of TrainConfig (learning_rate), groups of keys (optimizer), or all;
    /// data, to continue with other data, whose order then starts from the beginning.
    #[arg(long = "override", value_name = "KEY", num_args = 1.., requires = "resume")]
    pub overrides: Vec<String>,
    /// Folder of a LoRA adapter of PEFT that is merged into the weights of --model before training begins.
    #[arg(long, value_name = "DIR", requires = "model")]
    pub merge_adapter: Option<PathBuf>,
    /// Folder of a LoRA adapter of PEFT that is trained on beside --model; its rank, alpha and targets hold.
    #[arg(long, value_name = "DIR", requires = "model", conflicts_with_all = ["merge_adapter", "resume"])]
    pub adapter: Option<PathBuf>,
    /// Train a LoRA adapter beside --model, which does not change; --train-config {"adapter": …} has settings without an option.
    #[arg(long, requires = "model", conflicts_with_all = ["adapter", "resume"])]
    pub lora: bool,
    /// Rank of the factors.
    #[arg(long, value_name = "R", requires = "lora")]
    pub lora_r: Option<u64>,
    /// The product of the factors is multiplied by alpha / r.
    #[arg(long, value_name = "X", requires = "lora")]
    pub lora_alpha: Option<f64>,
    /// Matrices with factors: names or their ends, separated by commas; a regular expression of whole names; or all-linear.
    #[arg(long, value_name = "NAMES", requires = "lora")]
    pub lora_targets: Option<String>,
    /// Share of the inputs that the factors do not see in a step.
    #[arg(long, value_name = "P", requires = "lora")]
    pub lora_dropout: Option<f64>,
    /// Multiply by alpha / √r instead of alpha / r.
    #[arg(long, requires = "lora")]
    pub rslora: bool,
    /// How the base beside an adapter is stored on the device.
    #[arg(long, value_enum, value_name = "S")]
    pub base_storage: Option<StorageName>,
    /// Start even if weights of --model are NaN or infinite.
    #[arg(long, requires = "model")]
    pub allow_non_finite: bool,
    /// Training text (UTF-8), or JSON lines if the name ends in .jsonl: {"messages":[…]} or {"prompt","completion"},
    /// or token ids (u32, little endian) if it ends in .tokens.
    #[arg(long, value_name = "FILE")]
    pub data: PathBuf,
    /// Settings as JSON, with the keys of TrainConfig (crate/SETTINGS.md); options override them. This is also how to set start_decay of a
    /// wsd schedule or start_annealing of an infinite one, for a start at the first step or, with --resume, at the current one:
    /// {"schedule":{"start_decay":true,"decay_steps":500}}
    #[arg(long, value_name = "FILE")]
    pub train_config: Option<PathBuf>,
    /// Optimizer steps of the whole run, those before a resume included. A cosine or linear schedule over the whole run follows them.
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,
    /// Sequences of one micro-batch.
    #[arg(long, value_name = "B")]
    pub batch_size: Option<u64>,
    /// Tokens of one sequence.
    #[arg(long, value_name = "T")]
    pub seq_len: Option<u64>,
    /// Peak learning rate.
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub learning_rate: Option<f64>,
    /// Steps of linear warmup.
    #[arg(long, value_name = "W")]
    pub warmup_steps: Option<u64>,
    /// Learning rate over the steps: constant, cosine, linear, wsd or infinite; --train-config sets its details.
    #[arg(long, value_name = "NAME")]
    pub schedule: Option<String>,
    /// The final rate of the schedule.
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub min_learning_rate: Option<f64>,
    /// Update rule, such as adamw; --train-config sets its details.
    #[arg(long, value_name = "NAME")]
    pub optimizer: Option<String>,
    /// Parameter groups by name: no_decay (norms, biases and embeddings have no weight decay); --train-config sets others.
    #[arg(long, value_name = "NAME")]
    pub groups: Option<String>,
    /// Storage of weight matrices and moments: f32 or bf16.
    #[arg(long, value_name = "NAME")]
    pub precision: Option<String>,
    /// Micro-batches per step.
    #[arg(long, value_name = "K")]
    pub gradient_accumulation_steps: Option<u64>,
    /// Bound of the global gradient norm; 0 = none.
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub max_grad_norm: Option<f64>,
    /// Seed of everything random in the run.
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Share of the data kept for evaluation, from its end.
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub validation_fraction: Option<f64>,
    /// Recompute blocks in the backward pass: less memory, more time.
    #[arg(long)]
    pub gradient_checkpointing: bool,
    /// Update each block as soon as its gradients are complete: least memory. Needs --max-grad-norm 0.
    #[arg(long)]
    pub gradient_release: bool,
    /// Let a token see only its own document: in a text or in token ids, a document ends with each end token of the tokenizer (eos).
    #[arg(long)]
    pub document_mask: bool,
    /// Where to compute.
    #[arg(long, value_enum, default_value = "wgpu")]
    pub device: DeviceName,
    /// Treat a software adapter as a GPU: the kernels of GPUs run on it. `tests/same-bits.mjs` compares them.
    #[arg(long, hide = true)]
    pub as_gpu: bool,
    /// Folder of the checkpoint; a new checkpoint replaces the previous one.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Save every N steps, as well as at the end.
    #[arg(long, value_name = "N", requires = "out", value_parser = clap::value_parser!(u64).range(1..))]
    pub save_every: Option<u64>,
    /// Evaluate on the kept share of the data every N steps and at the end.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub eval_every: Option<u64>,
    /// Save and stop after this step, as if interrupted; the planned length (--steps) is unchanged.
    #[arg(long, value_name = "STEP")]
    pub stop_at: Option<u64>,
    /// Time each kernel and print a table at the end. Each kernel is submitted by itself, so steps take longer.
    #[arg(long)]
    pub profile: bool,
}
