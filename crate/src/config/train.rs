//! Settings of a training run.

use serde::{Deserialize, Serialize};

use super::rules::is_positive_f32;
use super::{
    AdapterConfig, BaseStorage, BlockCoordinateConfig, Columns, Form, GroupConfig, LossOn,
    OnBadRow, OnLong, OptimizerConfig, ScheduleConfig, ValidationRows,
};
use crate::error::{Error, Fault, Result};

/// Maximum weight of a data file.
const MAX_WEIGHT: f64 = 1000.0;

/// Maximum number of tokens in one step. All are collected before the step: 2 GiB of ids and targets.
const MAX_STEP_TOKENS: usize = 1 << 28;

/// Maximum number of steps: a report states it as a number of JSON, which others read as f64.
const MAX_STEPS: u64 = (1 << 53) - 1;

/// Maximum number of passes over the data.
const MAX_EPOCHS: f64 = 1e6;

/// Maximum number of steps whose reports are read together.
const MAX_REPORT_EVERY: usize = 1024;

/// Storage type of weight matrices and moments. All arithmetic is f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 4 bytes a value.
    #[default]
    F32,
    /// 2 bytes a value, written with stochastic rounding by default.
    Bf16,
}

/// Order in which the training data comes.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DataOrder {
    /// Shuffled by the seed, differently in each epoch.
    #[default]
    Shuffled,
    /// The order of the data, from its first token, the same in each epoch.
    Sequential,
}

/// All settings that `Trainer` needs in addition to model and data. Unknown keys are refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct TrainConfig {
    /// Number of optimizer steps of the whole run, including those before a resume; from 1 to 2^53 − 1.
    pub steps: u64,
    /// Number of passes over the training data, above 0 and at most 1,000,000, in place of `steps`: the number of steps is computed when
    /// the run begins. Absent if `steps` is given.
    pub epochs: Option<f64>,
    /// Number of sequences in one micro-batch, ≥ 1.
    pub batch_size: usize,
    /// Number of tokens in one sequence, ≥ 1. A run on rows that does not set it takes the smallest multiple of 64 that holds 95 % of the
    /// examples whole, at most 1024.
    pub seq_len: usize,
    /// Number of micro-batches in a step, ≥ 1; a step has at most 2^28 tokens.
    pub gradient_accumulation_steps: usize,
    /// Peak learning rate, > 0; a group multiplies it by its `learning_rate_scale`.
    pub learning_rate: f64,
    /// Maximum global 2-norm of the gradients, to which larger ones are scaled down; 0 disables clipping.
    pub max_grad_norm: f64,
    /// Seed of all random choices, from 0 to 2^53 − 1: order of the data, initial weights, rounding, projectors.
    pub seed: u64,
    /// Storage type of weight matrices and their moments: 4 bytes a value, or 2 with bf16. Arithmetic is f32.
    pub precision: Precision,
    /// Update rule and its settings.
    pub optimizer: OptimizerConfig,
    /// Parameter groups: a list, or `"no_decay"` (no weight decay for norms, biases and embeddings); an empty list is one group of all
    /// parameters.
    pub groups: Vec<GroupConfig>,
    /// Learning rate as a function of the step.
    pub schedule: ScheduleConfig,
    /// Low-rank factors that are trained in place of the weights (LoRA); null trains the weights.
    pub adapter: Option<AdapterConfig>,
    /// Storage type of the base's weights under an adapter: stored keeps them as in the file, bf16 takes 2 bytes a weight, f32 takes 4.
    /// Arithmetic is f32.
    pub base_storage: BaseStorage,
    /// Recompute each block in the backward pass instead of keeping its activations: less memory, more time. True by default with an
    /// adapter or `block_coordinate`.
    pub gradient_checkpointing: bool,
    /// Update each block as soon as its gradients are complete: least memory. Requires `gradient_accumulation_steps` 1, `max_grad_norm` 0
    /// and `report_every` 1, and excludes `block_coordinate`.
    pub gradient_release: bool,
    /// Number of steps whose losses and norms are read together, from 1 to 1024: with 1, those of each step are read before the next
    /// begins; with more, the GPU does not wait, and reports come late. Losses and weights do not depend on it. Must be 1 with
    /// `gradient_release`.
    pub report_every: usize,
    /// Train a few blocks at a time with AdamW, with clipping and accumulation in little memory; if absent, all blocks train in every
    /// step.
    pub block_coordinate: Option<BlockCoordinateConfig>,
    /// Let a token see only its own document; otherwise it sees all earlier tokens of its sequence, as GPT-2 was trained. Documents of a
    /// text end with the tokenizer's end tokens (eos).
    pub document_mask: bool,
    /// Order of the training data: shuffled draws a new order by the seed in each epoch; sequential keeps the order of the data, from its
    /// first token to its last.
    pub data_order: DataOrder,
    /// Share of the data kept for evaluation, 0 ≤ share < 1: the end of a text, or the rows that `validation_rows` selects.
    pub validation_fraction: f64,
    /// Rows that are kept for evaluation: random draws them by the seed, last takes those at the end, for rows in order of time.
    #[serde(default = "ValidationRows::before_it_was_set")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "random")))]
    pub validation_rows: ValidationRows,
    /// Number of times that the rows of each data file come in an epoch, above 0 and at most 1000, in the order of the files: 2 is twice,
    /// 0.5 is a newly drawn half of them in each epoch. With an empty list, all rows come once.
    #[serde(default)]
    pub data_weights: Vec<f64>,
    /// Form of the data files; if absent, it is detected from their contents.
    pub form: Option<Form>,
    /// Columns of the rows, if they have other names: `{"prompt": "question", "completion": "answer"}`; a value with braces is a pattern.
    pub columns: Option<Columns>,
    /// Treatment of a row that cannot be used: stop refuses the data, skip leaves the row out.
    pub on_bad_row: OnBadRow,
    /// Messages of a chat that are learned: each answer of the assistant, the last one, or the whole text.
    pub loss_on: LossOn,
    /// Treatment of an example that is longer than a sequence: cut leaves out its end, skip leaves out the example, split divides a
    /// document into several sequences and cuts other examples.
    pub on_long: OnLong,
    /// Put several examples into one sequence, each of which sees only itself. Applies to rows only.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub packing: bool,
    /// Date that chat templates see, as YYYY-MM-DD; by default the day on which the run begins, if a template asks for it.
    pub chat_date: Option<String>,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            steps: 100,
            epochs: None,
            batch_size: 4,
            seq_len: 128,
            gradient_accumulation_steps: 1,
            learning_rate: 1e-3,
            max_grad_norm: 1.0,
            seed: 0,
            precision: Precision::F32,
            optimizer: OptimizerConfig::default(),
            groups: Vec::new(),
            schedule: ScheduleConfig::default(),
            adapter: None,
            base_storage: BaseStorage::default(),
            gradient_checkpointing: false,
            gradient_release: false,
            report_every: 1,
            block_coordinate: None,
            document_mask: false,
            data_order: DataOrder::default(),
            validation_fraction: 0.0,
            validation_rows: ValidationRows::default(),
            data_weights: Vec::new(),
            form: None,
            columns: None,
            on_bad_row: OnBadRow::default(),
            loss_on: LossOn::default(),
            on_long: OnLong::default(),
            packing: true,
            chat_date: None,
        }
    }
}

/// Maximum seed: every integer up to it is an exact number in JSON and in JavaScript.
const MAX_SEED: u64 = (1 << 53) - 1;

/// Returns the fault of a seed that a browser could not represent.
pub(crate) fn seed_fault(seed: u64) -> Option<Fault> {
    (seed > MAX_SEED).then(|| {
        Fault::new(
            "seed",
            format!("an integer from 0 to {MAX_SEED} (2^53 − 1)"),
            seed,
        )
    })
}

impl TrainConfig {
    /// Checks that the settings can work.
    ///
    /// # Errors
    /// `config.invalid`, listing every fault.
    pub fn validate(&self) -> Result<()> {
        let faults = self.faults();
        if faults.is_empty() {
            Ok(())
        } else {
            Err(Error::InvalidConfig(faults))
        }
    }

    /// Returns the rules that these values break.
    #[doc(hidden)]
    pub fn faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut positive = |key: &str, value: u64| {
            if value == 0 {
                faults.push(Fault::new(key, "an integer ≥ 1", value));
            }
        };
        positive("steps", self.steps);
        positive("batch_size", self.batch_size as u64);
        positive("seq_len", self.seq_len as u64);
        positive(
            "gradient_accumulation_steps",
            self.gradient_accumulation_steps as u64,
        );
        let tokens = [
            self.batch_size,
            self.seq_len,
            self.gradient_accumulation_steps,
        ]
        .into_iter()
        .try_fold(1, usize::checked_mul);
        if tokens.is_none_or(|tokens| tokens > MAX_STEP_TOKENS) {
            let rule = format!(
                "so small that a step has at most {MAX_STEP_TOKENS} tokens, batch_size · seq_len · gradient_accumulation_steps"
            );
            let Self {
                batch_size,
                seq_len,
                gradient_accumulation_steps: accumulated,
                ..
            } = self;
            let found = format!(
                "{accumulated}, with a batch_size of {batch_size} and a seq_len of {seq_len}"
            );
            faults.push(Fault::new("gradient_accumulation_steps", rule, found));
        }
        if self.steps > MAX_STEPS {
            faults.push(Fault::new(
                "steps",
                format!("at most {MAX_STEPS}"),
                self.steps,
            ));
        }
        if let Some(epochs) = self
            .epochs
            .filter(|epochs| !(*epochs > 0.0 && *epochs <= MAX_EPOCHS))
        {
            faults.push(Fault::new(
                "epochs",
                format!("a number above 0, at most {MAX_EPOCHS}"),
                epochs,
            ));
        }
        if !is_positive_f32(self.learning_rate) {
            faults.push(Fault::new(
                "learning_rate",
                "finite and > 0 in f32",
                self.learning_rate,
            ));
        }
        if !(self.max_grad_norm == 0.0 || is_positive_f32(self.max_grad_norm)) {
            faults.push(Fault::new(
                "max_grad_norm",
                "0, or finite and > 0 in f32",
                self.max_grad_norm,
            ));
        }
        if !(0.0..1.0).contains(&self.validation_fraction) {
            faults.push(Fault::new(
                "validation_fraction",
                "0 ≤ fraction < 1",
                self.validation_fraction,
            ));
        }
        for (index, weight) in self.data_weights.iter().enumerate() {
            if !(*weight > 0.0 && *weight <= MAX_WEIGHT) {
                faults.push(Fault::new(
                    format!("data_weights[{index}]"),
                    format!("a number above 0, at most {MAX_WEIGHT}"),
                    weight,
                ));
            }
        }
        if self.gradient_release && self.gradient_accumulation_steps != 1 {
            let rule = "1 with gradient_release: block_coordinate accumulates in little memory";
            faults.push(Fault::new(
                "gradient_accumulation_steps",
                rule,
                self.gradient_accumulation_steps,
            ));
        }
        if self.gradient_release && self.max_grad_norm != 0.0 {
            let rule = "0 with gradient_release, where the norm is known after the updates: block_coordinate clips in little memory";
            faults.push(Fault::new("max_grad_norm", rule, self.max_grad_norm));
        }
        if !(1..=MAX_REPORT_EVERY).contains(&self.report_every) {
            faults.push(Fault::new(
                "report_every",
                format!("1 to {MAX_REPORT_EVERY} steps"),
                self.report_every,
            ));
        }
        if self.gradient_release && self.report_every != 1 {
            faults.push(Fault::new(
                "report_every",
                "1 with gradient_release: a loss is read before anything changes",
                self.report_every,
            ));
        }
        faults.extend(seed_fault(self.seed));
        faults.extend(self.optimizer.faults(self.learning_rate));
        for (index, group) in self.groups.iter().enumerate() {
            faults.extend(group.faults(index, self.learning_rate));
        }
        faults.extend(GroupConfig::all_frozen(&self.groups));
        faults.extend(self.schedule.faults(self.learning_rate));
        if self.adapter.is_none() && self.base_storage != BaseStorage::default() {
            let rule = "stored, unless an adapter is trained: without one the weights are stored in `precision`";
            faults.push(Fault::new(
                "base_storage",
                rule,
                format!("{:?}", self.base_storage).to_lowercase(),
            ));
        }
        faults.extend(self.adapter.iter().flat_map(AdapterConfig::faults));
        faults.extend(self.columns.iter().flat_map(Columns::faults));
        faults.extend(
            self.block_coordinate
                .iter()
                .flat_map(|blocks| blocks.faults(self)),
        );
        faults
    }
}
