//! The settings of a run as options.

use std::path::PathBuf;

use clap::Args;

use super::{ReadingArgs, StorageName};

/// A number of steps.
#[derive(Debug, Clone, Copy)]
pub struct Steps {
    /// They come after those that were made.
    pub more: bool,
    /// How many.
    pub count: u64,
}

impl std::str::FromStr for Steps {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let more = text.strip_prefix('+');
        Ok(Self { more: more.is_some(), count: more.unwrap_or(text).parse()? })
    }
}

/// What a run is trained with.
#[derive(Debug, Args)]
pub struct SettingsArgs {
    /// Settings as JSON, with the keys of TrainConfig (crate/SETTINGS.md); options override them. This is also how to set start_decay of a
    /// wsd schedule or start_annealing of an infinite one, for a start at the first step or, with --resume, at the current one:
    /// {"schedule":{"start_decay":true,"decay_steps":500}}
    #[arg(long, value_name = "FILE")]
    pub train_config: Option<PathBuf>,
    /// Optimizer steps of the whole run, those before a resume included; +N: N more than a resumed run has made. A cosine or linear schedule over the whole run follows them.
    #[arg(long, value_name = "N")]
    pub steps: Option<Steps>,
    /// Passes over the data, in place of --steps.
    #[arg(long, value_name = "X", allow_negative_numbers = true, conflicts_with = "steps")]
    pub epochs: Option<f64>,
    /// Sequences of one micro-batch.
    #[arg(long, value_name = "B")]
    pub batch_size: Option<u64>,
    /// Tokens of one sequence [default: by the rows; 128 for a text].
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
    /// Rows that are kept for evaluation: random, or last.
    #[arg(long, value_name = "NAME")]
    pub validation_rows: Option<String>,
    /// How often the rows of each file of --data come in an epoch, separated by commas: 2 is twice, 0.5 another half in each.
    #[arg(long, value_name = "X,…", value_delimiter = ',')]
    pub data_weights: Vec<f64>,
    /// Recompute blocks in the backward pass: less memory, more time.
    #[arg(long)]
    pub gradient_checkpointing: bool,
    /// Update each block as soon as its gradients are complete: least memory. Needs --max-grad-norm 0.
    #[arg(long)]
    pub gradient_release: bool,
    /// Read the losses and norms of N steps together; the device goes on meanwhile. The results are the same bits.
    #[arg(long, value_name = "N")]
    pub report_every: Option<u64>,
    /// Train this many blocks at a time with AdamW, then the next: little memory with clipping and accumulation. Blocks are recomputed;
    /// --train-config {"block_coordinate": …} has settings without an option.
    #[arg(long, value_name = "K")]
    pub block_coordinate: Option<u64>,
    /// Steps until the next blocks train.
    #[arg(long, value_name = "N", requires = "block_coordinate")]
    pub block_interval: Option<u64>,
    /// Order of the blocks: shuffled, ascending or descending.
    #[arg(long, value_name = "NAME", requires = "block_coordinate")]
    pub block_order: Option<String>,
    /// Let a token see only its own document: in a text or in token ids, a document ends with each end token of the tokenizer (eos).
    #[arg(long)]
    pub document_mask: bool,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Put each example into a sequence of its own. By default several share one, each of which sees only itself.
    #[arg(long)]
    pub no_packing: bool,
    /// An example that is longer than a sequence: cut (its end is left out), skip, or split (documents).
    #[arg(long, value_name = "NAME")]
    pub on_long: Option<String>,
    /// Train a LoRA adapter beside the model, which does not change; --train-config {"adapter": …} has settings without an option.
    #[arg(long)]
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
}
