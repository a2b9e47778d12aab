//! Settings of a training run.

use super::declare::{settings, words};
use super::rules::{Rules, is_positive_f32};
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

words! {
    /// Storage type of weight matrices and moments. All arithmetic is f32.
    pub enum Precision {
        /// 4 bytes a value.
        #[default]
        F32,
        /// 2 bytes a value, written with stochastic rounding by default.
        Bf16,
    }
}

words! {
    /// Order in which the training data comes.
    #[doc(hidden)]
    pub enum DataOrder {
        /// Shuffled by the seed, differently in each epoch.
        #[default]
        Shuffled,
        /// The order of the data, from its first token, the same in each epoch.
        Sequential,
    }
}

settings! {
    /// All settings that `Trainer` needs in addition to model and data. Unknown keys are refused.
    pub struct TrainConfig {
        /// Number of optimizer steps of the whole run, including those before a resume; from 1 to 2^53 − 1.
        steps: u64 = 100,
        /// Number of passes over the training data, above 0 and at most 1,000,000, in place of `steps`: the number of
        /// steps is computed when the run begins. Absent if `steps` is given.
        epochs: Option<f64> = None,
        /// Number of sequences in one micro-batch, ≥ 1.
        batch_size: usize = 4,
        /// Number of tokens in one sequence, ≥ 1. A run on rows that does not set it takes the smallest multiple of 64
        /// that holds 95 % of the examples whole, at most 1024.
        seq_len: usize = 128,
        /// Number of micro-batches in a step, ≥ 1; a step has at most 2^28 tokens.
        gradient_accumulation_steps: usize = 1,
        /// Peak learning rate, > 0; a group multiplies it by its `learning_rate_scale`.
        learning_rate: f64 = 1e-3,
        /// Maximum global 2-norm of the gradients, to which larger ones are scaled down; 0 disables clipping.
        max_grad_norm: f64 = 1.0,
        /// Seed of all random choices, from 0 to 2^53 − 1: order of the data, initial weights, rounding, projectors.
        seed: u64 = 0,
        /// Storage type of weight matrices and their moments: 4 bytes a value, or 2 with bf16. Arithmetic is f32.
        precision: Precision = Precision::F32,
        /// Update rule and its settings.
        optimizer: OptimizerConfig = OptimizerConfig::default(),
        /// Parameter groups: a list, or `"no_decay"` (no weight decay for norms, biases, rates and embeddings); an empty list
        /// is one group of all parameters.
        groups: Vec<GroupConfig> = Vec::new(),
        /// Learning rate as a function of the step.
        schedule: ScheduleConfig = ScheduleConfig::default(),
        /// Low-rank factors that are trained in place of the weights (LoRA); null trains the weights.
        adapter: Option<AdapterConfig> = None,
        /// Storage type of the base's weights under an adapter: stored keeps them as in the file, bf16 takes 2 bytes a
        /// weight, f32 takes 4. Arithmetic is f32.
        base_storage: BaseStorage = BaseStorage::default(),
        /// Recompute each block in the backward pass instead of keeping its activations: less memory, more time. True
        /// by default with an adapter or `block_coordinate`.
        gradient_checkpointing: bool = false,
        /// Update each block as soon as its gradients are complete: least memory. Requires
        /// `gradient_accumulation_steps` 1, `max_grad_norm` 0 and `report_every` 1, and excludes `block_coordinate`.
        gradient_release: bool = false,
        /// Number of steps whose losses and norms are read together, from 1 to 1024: with 1, those of each step are
        /// read before the next begins; with more, the GPU does not wait, and reports come late. Losses and weights do
        /// not depend on it. Must be 1 with
        /// `gradient_release`.
        report_every: usize = 1,
        /// Train a few blocks at a time with AdamW, with clipping and accumulation in little memory; if absent, all
        /// blocks train in every step.
        block_coordinate: Option<BlockCoordinateConfig> = None,
        /// Let a token see only its own document; otherwise it sees all earlier tokens of its sequence, as GPT-2 was
        /// trained. Documents of a text end with the tokenizer's end tokens (eos).
        document_mask: bool = false,
        /// Order of the training data: shuffled draws a new order by the seed in each epoch; sequential keeps the order
        /// of the data, from its first token to its last.
        data_order: DataOrder = DataOrder::default(),
        /// Share of the data kept for evaluation, 0 ≤ share < 1: the end of a text, or the rows that `validation_rows`
        /// selects.
        validation_fraction: f64 = 0.0,
        /// Rows that are kept for evaluation: random draws them by the seed, last takes those at the end, for rows in
        /// order of time.
        #[serde(default = "ValidationRows::before_it_was_set")]
        #[cfg_attr(feature = "schema", schemars(extend("default" = "random")))]
        validation_rows: ValidationRows = ValidationRows::default(),
        /// Number of times that the rows of each data file come in an epoch, above 0 and at most 1000, in the order of
        /// the files: 2 is twice,
        /// 0.5 is a newly drawn half of them in each epoch. With an empty list, all rows come once.
        #[serde(default)]
        data_weights: Vec<f64> = Vec::new(),
        /// Form of the data files; if absent, it is detected from their contents.
        form: Option<Form> = None,
        /// Columns of the rows, if they have other names: `{"prompt": "question", "completion": "answer"}`; a value
        /// with braces is a pattern.
        columns: Option<Columns> = None,
        /// Treatment of a row that cannot be used: stop refuses the data, skip leaves the row out.
        on_bad_row: OnBadRow = OnBadRow::default(),
        /// Messages of a chat that are learned: each answer of the assistant, the last one, or the whole text.
        loss_on: LossOn = LossOn::default(),
        /// Treatment of an example that is longer than a sequence: cut leaves out its end, skip leaves out the example,
        /// split divides a document into several sequences and cuts other examples.
        on_long: OnLong = OnLong::default(),
        /// Put several examples into one sequence, each of which sees only itself. Applies to rows only.
        #[serde(default)]
        #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
        packing: bool = true,
        /// Date that chat templates see, as YYYY-MM-DD; by default the day on which the run begins, if a template asks
        /// for it.
        chat_date: Option<String> = None,
    }
}

/// Maximum seed: every integer up to it is an exact number in JSON and in JavaScript.
const MAX_SEED: u64 = (1 << 53) - 1;

/// The fault of a seed that a browser could not represent.
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
        Error::of_faults(self.faults())
    }

    /// The rules that these values break.
    #[doc(hidden)]
    pub fn faults(&self) -> Vec<Fault> {
        let mut rules = Rules::default();
        let Self {
            batch_size,
            seq_len,
            gradient_accumulation_steps: accumulated,
            ..
        } = *self;
        for (key, value) in [
            ("steps", self.steps),
            ("batch_size", batch_size as u64),
            ("seq_len", seq_len as u64),
            ("gradient_accumulation_steps", accumulated as u64),
        ] {
            rules.check(value > 0, key, "an integer ≥ 1", value);
        }
        let tokens = [batch_size, seq_len, accumulated]
            .into_iter()
            .try_fold(1, usize::checked_mul);
        rules.check(
            tokens.is_some_and(|tokens| tokens <= MAX_STEP_TOKENS),
            "gradient_accumulation_steps",
            format!(
                "so small that a step has at most {MAX_STEP_TOKENS} tokens, batch_size · seq_len · gradient_accumulation_steps"
            ),
            format!("{accumulated}, with a batch_size of {batch_size} and a seq_len of {seq_len}"),
        );
        rules.check(
            self.steps <= MAX_STEPS,
            "steps",
            format!("at most {MAX_STEPS}"),
            self.steps,
        );
        if let Some(epochs) = self.epochs {
            let rule = format!("a number above 0, at most {MAX_EPOCHS}");
            rules.check(epochs > 0.0 && epochs <= MAX_EPOCHS, "epochs", rule, epochs);
        }
        rules.check(
            is_positive_f32(self.learning_rate),
            "learning_rate",
            "finite and > 0 in f32",
            self.learning_rate,
        );
        rules.check(
            self.max_grad_norm == 0.0 || is_positive_f32(self.max_grad_norm),
            "max_grad_norm",
            "0, or finite and > 0 in f32",
            self.max_grad_norm,
        );
        rules.check(
            (0.0..1.0).contains(&self.validation_fraction),
            "validation_fraction",
            "0 ≤ fraction < 1",
            self.validation_fraction,
        );
        for (index, &weight) in self.data_weights.iter().enumerate() {
            rules.check(
                weight > 0.0 && weight <= MAX_WEIGHT,
                &format!("data_weights[{index}]"),
                format!("a number above 0, at most {MAX_WEIGHT}"),
                weight,
            );
        }
        let release = self.gradient_release;
        rules.check(
            !release || accumulated == 1,
            "gradient_accumulation_steps",
            "1 with gradient_release: block_coordinate accumulates in little memory",
            accumulated,
        );
        rules.check(
            !release || self.max_grad_norm == 0.0,
            "max_grad_norm",
            "0 with gradient_release, where the norm is known after the updates: block_coordinate clips in little memory",
            self.max_grad_norm,
        );
        rules.check(
            (1..=MAX_REPORT_EVERY).contains(&self.report_every),
            "report_every",
            format!("1 to {MAX_REPORT_EVERY} steps"),
            self.report_every,
        );
        rules.check(
            !release || self.report_every == 1,
            "report_every",
            "1 with gradient_release: a loss is read before anything changes",
            self.report_every,
        );
        let faults = &mut rules.faults;
        faults.extend(seed_fault(self.seed));
        faults.extend(self.optimizer.faults(self.learning_rate));
        for (index, group) in self.groups.iter().enumerate() {
            faults.extend(group.faults(index, self.learning_rate));
        }
        faults.extend(GroupConfig::all_frozen(&self.groups));
        faults.extend(self.schedule.faults(self.learning_rate));
        rules.check(
            self.adapter.is_some() || self.base_storage == BaseStorage::default(),
            "base_storage",
            "stored, unless an adapter is trained: without one the weights are stored in `precision`",
            format!("{:?}", self.base_storage).to_lowercase(),
        );
        let faults = &mut rules.faults;
        faults.extend(self.adapter.iter().flat_map(AdapterConfig::faults));
        faults.extend(self.columns.iter().flat_map(Columns::faults));
        faults.extend(
            self.block_coordinate
                .iter()
                .flat_map(|blocks| blocks.faults(self)),
        );
        rules.faults
    }
}
