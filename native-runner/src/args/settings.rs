//! Options for the settings of a run.

use std::path::PathBuf;

use clap::Args;

use super::{ReadingArgs, StorageName};

/// Value of `--steps`.
#[derive(Debug, Clone, Copy)]
pub struct Steps {
    /// True for `+N`: N steps after those that the run has already made.
    pub more: bool,
    /// Number of steps.
    pub count: u64,
}

impl std::str::FromStr for Steps {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let more = text.strip_prefix('+');
        Ok(Self { more: more.is_some(), count: more.unwrap_or(text).parse()? })
    }
}

/// Settings of a training run.
#[derive(Debug, Clone, Default, Args)]
pub struct SettingsArgs {
    /// JSON file of settings, with the keys of TrainConfig (crate/SETTINGS.md). Options override it; a setting in neither has its default or,
    /// with --resume, the value in the checkpoint. The file can also set start_decay of a wsd schedule or start_annealing of an infinite one,
    /// to start it at the first step or, with --resume, at the current one: {"schedule":{"start_decay":true,"decay_steps":500}}
    #[arg(long, value_name = "FILE")]
    pub train_config: Option<PathBuf>,
    /// Optimizer steps of the whole run, including those before a resume; +N: N more than the resumed run has made [default: 100]. A cosine
    /// or linear schedule over the whole run follows them.
    #[arg(long, value_name = "N")]
    pub steps: Option<Steps>,
    /// Passes over the training data, in place of --steps.
    #[arg(long, value_name = "X", allow_negative_numbers = true, conflicts_with = "steps")]
    pub epochs: Option<f64>,
    /// Number of sequences in one micro-batch [default: 4].
    #[arg(long, value_name = "B")]
    pub batch_size: Option<u64>,
    /// Sequence length in tokens [default: by the lengths of the rows; 128 for a text].
    #[arg(long, value_name = "T")]
    pub seq_len: Option<u64>,
    /// Peak learning rate [default: 0.001].
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub learning_rate: Option<f64>,
    /// Number of steps of linear warmup [default: 0].
    #[arg(long, value_name = "W")]
    pub warmup_steps: Option<u64>,
    /// Schedule of the learning rate: constant, cosine, linear, wsd or infinite; --train-config sets its details [default: constant].
    #[arg(long, value_name = "NAME")]
    pub schedule: Option<String>,
    /// Final learning rate of the schedule [default: 0; for wsd a tenth of the peak, for infinite a tenth of its constant rate].
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub min_learning_rate: Option<f64>,
    /// Update rule: adamw, adafactor, apollo or sgd; --train-config sets its details [default: adamw].
    #[arg(long, value_name = "NAME")]
    pub optimizer: Option<String>,
    /// Predefined parameter groups: no_decay (no weight decay for norms, biases and embeddings); --train-config sets others [default: none].
    #[arg(long, value_name = "NAME")]
    pub groups: Option<String>,
    /// Storage of weight matrices and their moments: f32 or bf16 [default: f32].
    #[arg(long, value_name = "NAME")]
    pub precision: Option<String>,
    /// Number of micro-batches per step [default: 1].
    #[arg(long, value_name = "K")]
    pub gradient_accumulation_steps: Option<u64>,
    /// Maximum global gradient norm, above which gradients are clipped; 0 = no clipping [default: 1].
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub max_grad_norm: Option<f64>,
    /// Seed of everything random in the run [default: 0].
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Share of the data kept for evaluation, from 0 to 1: the end of a text, rows by --validation-rows [default: 0].
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub validation_fraction: Option<f64>,
    /// Rows that are kept for evaluation: random, or last [default: random].
    #[arg(long, value_name = "NAME")]
    pub validation_rows: Option<String>,
    /// Number of times that the rows of each file of --data occur in an epoch, separated by commas: 2 is twice, 0.5 another half in each epoch
    /// [default: once].
    #[arg(long, value_name = "X,…", value_delimiter = ',')]
    pub data_weights: Vec<f64>,
    /// Recompute blocks in the backward pass: less memory, more time.
    #[arg(long)]
    pub gradient_checkpointing: bool,
    /// Update each block as soon as its gradients are complete: least memory. Needs --max-grad-norm 0.
    #[arg(long)]
    pub gradient_release: bool,
    /// Read the losses and norms of N steps together, while the device continues to compute. The results have the same bits [default: 1].
    #[arg(long, value_name = "N")]
    pub report_every: Option<u64>,
    /// Train K blocks at a time with AdamW, then the next K: little memory, with clipping and accumulation. Blocks are recomputed;
    /// --train-config {"block_coordinate": …} has the settings without an option.
    #[arg(long, value_name = "K")]
    pub block_coordinate: Option<u64>,
    /// Number of steps until the next blocks train [default: 50].
    #[arg(long, value_name = "N", requires = "block_coordinate")]
    pub block_interval: Option<u64>,
    /// Order of the blocks: shuffled, ascending or descending [default: shuffled].
    #[arg(long, value_name = "NAME", requires = "block_coordinate")]
    pub block_order: Option<String>,
    /// Let a token attend to its own document only. In a text or in token ids, a document ends with each end token of the tokenizer (eos).
    #[arg(long)]
    pub document_mask: bool,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Put each example into a sequence of its own. By default several share a sequence, and each attends to itself only.
    #[arg(long)]
    pub no_packing: bool,
    /// Treatment of an example that is longer than a sequence: cut (leave out its end), skip, or split (documents) [default: cut].
    #[arg(long, value_name = "NAME")]
    pub on_long: Option<String>,
    /// Train a LoRA adapter and leave the model unchanged; --train-config {"adapter": …} has the settings without an option.
    #[arg(long)]
    pub lora: bool,
    /// Rank r of the adapter's factors [default: 8].
    #[arg(long, value_name = "R", requires = "lora")]
    pub lora_r: Option<u64>,
    /// Scale alpha: the product of the factors is multiplied by alpha / r [default: 8].
    #[arg(long, value_name = "X", requires = "lora")]
    pub lora_alpha: Option<f64>,
    /// Matrices that get factors: names or their ends, separated by commas; a regular expression of whole names; or all-linear [default:
    /// q_proj,v_proj; for GPT-2 c_attn].
    #[arg(long, value_name = "NAMES", requires = "lora")]
    pub lora_targets: Option<String>,
    /// Dropout: share of the inputs that the factors do not see in a step, at least 0 and below 1 [default: 0].
    #[arg(long, value_name = "P", requires = "lora")]
    pub lora_dropout: Option<f64>,
    /// Multiply by alpha / √r (rsLoRA) instead of alpha / r.
    #[arg(long, requires = "lora")]
    pub rslora: bool,
    /// Storage of an adapter's base on the device [default: stored].
    #[arg(long, value_enum, value_name = "S")]
    pub base_storage: Option<StorageName>,
}
