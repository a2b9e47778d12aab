//! Plans the bytes that a run takes on the device, before anything is allocated.

use burn::tensor::DType;

use super::block_coordinate::{BlockCoordinate, BlockParameter};
use super::constants::{Constants, StoredForms};
use super::loss::MAX_LOGITS_BYTES;
use crate::bundle::Bundle;
use crate::config::{ModelConfig, Precision, Slot, TrainConfig};
use crate::error::Result;
use crate::model::{Adaptation, Kind, ParameterRequest, Plan, files_form};
use crate::ops::linear::work::{input_work_bytes, weight_work_bytes};
use crate::ops::loss::head::HeadPlan;
use crate::ops::low_rank::work_bytes;
use crate::optim::{Optim, ParamInfo};

/// Bytes by purpose at the peak of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryPlan {
    /// Parameters, the constants of a model with an adapter, and the tables of rotary positions.
    pub weights: u64,
    /// Part of `weights` that is not trained: the constants of a model with an adapter, and the tables of rotary positions.
    pub base: u64,
    /// One f32 per trained value; with gradient release, those of one block at a time.
    pub gradients: u64,
    /// Moments, and APOLLO's orthogonal projectors.
    pub optimizer: u64,
    /// Additional memory of the backward pass and the logits at the peak: activations are freed while gradients are made.
    pub activations: u64,
}

impl MemoryPlan {
    /// Returns the sum.
    pub fn total(&self) -> u64 {
        self.weights + self.gradients + self.optimizer + self.activations
    }
}

/// Returns the factors A `[r, in]`.
fn first_factors(trained: &[ParameterRequest]) -> impl Iterator<Item = &ParameterRequest> {
    trained
        .iter()
        .filter(|request| matches!(request.kind, Kind::Uniform | Kind::Gaussian))
}

/// Plans the memory that training a model of this shape with these settings takes by the kernels of a GPU, or by those for `software`
/// adapters. `base` are the files of the base, for matrices that an adapter leaves as they are stored.
///
/// # Errors
/// `config.invalid` and `optim.groups` for settings that do not fit the model, and the errors of [`Adaptation::of_run`].
pub fn memory_plan(
    model: &ModelConfig,
    train: &TrainConfig,
    base: Option<&Bundle>,
    software: bool,
) -> Result<MemoryPlan> {
    memory_plan_of(model, train, &files_form(base), software)
}

/// Plans the same for a base whose matrices are `stored` in these forms. If only some blocks train in a step, the plan is that of the step
/// that takes most.
///
/// # Errors
/// As [`memory_plan`].
pub(crate) fn memory_plan_of(
    model: &ModelConfig,
    train: &TrainConfig,
    stored: &StoredForms<'_>,
    software: bool,
) -> Result<MemoryPlan> {
    let constants = Constants {
        storage: train.base_storage,
        stored,
    };
    let stored = |shape: &[usize]| {
        if shape.len() == 2 && train.precision == Precision::Bf16 {
            DType::BF16
        } else {
            DType::F32
        }
    };
    let plan = Plan::of(model, Adaptation::of_run(train, model)?.as_ref())?;
    let info = |request: &ParameterRequest| ParamInfo {
        name: request.name.clone(),
        shape: request.shape.clone(),
        dtype: stored(&request.shape),
        outside_blocks: request.part.block().is_none(),
    };
    let (trained, constant): (Vec<ParameterRequest>, Vec<ParameterRequest>) = plan
        .parameters
        .iter()
        .cloned()
        .partition(|request| request.trained);
    let parameters: Vec<ParamInfo> = trained.iter().map(info).collect();
    let mut optim = Optim::new(train, &parameters)?;
    let base = constant
        .iter()
        .map(|request| constants.bytes(request))
        .sum::<u64>()
        + 4 * plan.rotary_values(train.seq_len, model.max_position_embeddings) as u64;
    let weights = base
        + parameters
            .iter()
            .map(|parameter| (parameter.elements() * parameter.dtype.size()) as u64)
            .sum::<u64>();
    // A layer that only multiplies by a packed constant does not need its input for the backward pass.
    let needs = |request: &&ParameterRequest| {
        request.part.block().is_some()
            && request.kind.is_matrix()
            && (request.trained || !constants.packed(request))
    };
    let needing: Vec<&ParameterRequest> = plan.parameters.iter().filter(needs).collect();
    let needed = |slot: Slot| needing.iter().any(|request| request.slot == slot);
    let run = Run {
        model,
        train,
        software,
        kept: plan.kept_by_blocks(train.seq_len, needed),
        keeps_last: needed(Slot::Down),
        rank_of_last: first_factors(&trained)
            .filter(|request| request.slot == Slot::Down)
            .map(|request| request.shape[0])
            .max(),
        conv1d: plan.stack.conv1d,
        beside_adapter: !constant.is_empty(),
        parameters: &parameters,
        trained: &trained,
        base,
        weights,
    };
    let placed = trained.iter().map(|request| BlockParameter {
        name: &request.name,
        part: request.part,
        is_vector: request.shape.len() != 2,
    });
    let Some(block_coordinate) =
        BlockCoordinate::of_run(train, placed, &|name| optim.frozen(name))?
    else {
        return Ok(run.step(&optim));
    };
    let steps = block_coordinate.turns().map(|active| {
        optim.rest(1, &|name| block_coordinate.rests(name, active));
        run.step(&optim)
    });
    Ok(steps
        .max_by_key(MemoryPlan::total)
        .expect("some blocks train"))
}

/// Data that are the same in every step of a run.
struct Run<'a> {
    model: &'a ModelConfig,
    train: &'a TrainConfig,
    software: bool,
    /// Number of values of a sequence that each block keeps for its backward pass.
    kept: Vec<usize>,
    /// True if the input of a block's last linear layer is among them.
    keeps_last: bool,
    /// Largest rank of that layer's factors, if it has any.
    rank_of_last: Option<usize>,
    /// True if the matrices of the blocks are stored as `[in, out]`.
    conv1d: bool,
    beside_adapter: bool,
    parameters: &'a [ParamInfo],
    trained: &'a [ParameterRequest],
    base: u64,
    weights: u64,
}

impl Run<'_> {
    /// Returns the plan of a step in which `optim` trains every parameter that is neither frozen nor at rest.
    fn step(&self, optim: &Optim) -> MemoryPlan {
        let &Self {
            model,
            train,
            software,
            base,
            weights,
            ..
        } = self;
        let layers = model.num_hidden_layers;
        let mut blocks = vec![0; layers];
        // Gradients outside the blocks; the part of these that the head's backward pass makes; the part of that one that lookups add to.
        let (mut outside, mut of_head, mut tied, mut tables) = (0, 0, 0, false);
        for (parameter, ParameterRequest { part, .. }) in self.parameters.iter().zip(self.trained) {
            let gradient = if optim.frozen(&parameter.name) {
                0
            } else {
                4 * parameter.elements() as u64
            };
            match part.block() {
                Some(block) => blocks[block] += gradient,
                None => outside += gradient,
            }
            of_head += if part.in_head() { gradient } else { 0 };
            tied += if part.in_head() && part.is_table() {
                gradient
            } else {
                0
            };
            tables |= part.is_table() && gradient > 0;
        }
        // The lowest block that the backward pass reaches, and how many it runs through.
        let lowest = if tables {
            0
        } else {
            blocks
                .iter()
                .position(|&gradient| gradient > 0)
                .unwrap_or(layers)
        };
        let reached = (layers - lowest) as u64;
        let (all, largest) = (
            blocks.iter().sum::<u64>(),
            blocks.iter().copied().max().unwrap_or(0),
        );
        let release = train.gradient_release;
        let gradients = if release {
            of_head.max(tied + largest).max(outside - of_head + tied)
        } else {
            outside + all
        };

        let by_block = release || train.gradient_checkpointing;
        let tokens = train.batch_size * train.seq_len;
        let floats = |per_token: usize| 4 * (tokens * per_token) as u64;
        let row = floats(model.hidden_size);
        let block = |at: usize| 4 * (train.batch_size * self.kept[at]) as u64;
        // Bytes that the blocks of a range keep until their own backward pass.
        let waiting = |blocks: std::ops::Range<usize>| {
            blocks
                .map(|at| if by_block { row } else { block(at) })
                .sum::<u64>()
        };
        let kept = waiting(lowest..layers)
            + floats(
                first_factors(self.trained)
                    .map(|request| request.shape[0])
                    .sum(),
            );
        let plan_of_head = HeadPlan {
            rows: (MAX_LOGITS_BYTES / 4 / model.vocab_size).max(1),
        };
        let rows = plan_of_head.rows_of_a_run(tokens);
        // Memory that the gradients of a product `[n, m]` of rows of k values hold in addition to their results; for the matrix only if it
        // is trained.
        let of_input = |shape: [usize; 3]| input_work_bytes(software, shape);
        let of_weight = |trains: bool, shape: [usize; 3]| {
            if trains {
                weight_work_bytes(software, shape)
            } else {
                0
            }
        };
        let (width, mlp) = (model.hidden_size, model.intermediate_size);
        let shape = [rows, model.vocab_size, width];
        let logits = 4 * (rows * model.vocab_size) as u64
            + of_input(shape).max(of_weight(of_head > 0, shape));
        // The tape of a trained head is freed with its view of the model, which only gradient release drops before the blocks.
        let tape = if release || outside == 0 { 0 } else { row };
        let plain = train
            .adapter
            .as_ref()
            .is_none_or(|adapter| adapter.dropout <= 0.0)
            && !self.conv1d;
        // Peak of a block in its passes: when the last linear layer has its output, before the backward pass through that layer, or when
        // all gradients of the block exist.
        let busy = |at: usize, gradient: u64| {
            let trains = !self.beside_adapter && gradient > 0;
            let dw = if trains { 4 * (mlp * width) as u64 } else { 0 };
            let last =
                of_input([tokens, width, mlp]).max(dw + of_weight(trains, [tokens, width, mlp]));
            let before = if self.beside_adapter {
                0
            } else {
                dw + of_input([tokens, mlp, width])
            };
            let forward = row + if self.keeps_last { 0 } else { floats(mlp) };
            let backward = match self.rank_of_last {
                Some(rank) => tape + work_bytes(software, plain, [tokens, width, mlp, rank]),
                None => floats(mlp) + (tape + last).max(before),
            };
            (block(at) + forward.max(backward))
                .max(gradient + 5 * row + of_weight(trains, [tokens, width, width]))
        };
        // Sums of earlier batches. The gradients of this one are added when all of them exist, or with checkpointing when those of a block
        // exist.
        let earlier = if train.gradient_accumulation_steps > 1 {
            gradients
        } else {
            0
        };
        // Includes the last block's output, its norm, and the gradient of the norm.
        let head = earlier + of_head + kept + 3 * row + logits;
        let of_last = blocks.last().copied().filter(|_| reached > 0);
        let last_block = match of_last {
            Some(gradient) if by_block => {
                earlier + kept + busy(layers - 1, gradient) + if release { tied } else { of_head }
            }
            _ => 0,
        };
        // A block on the way down: the gradients of the blocks above exist, and the inputs or activations of those below are kept.
        let passed = (lowest..layers).map(|at| {
            let below = waiting(lowest..at);
            match (release, by_block && earlier > 0) {
                (true, _) => busy(at, blocks[at]) + tied,
                (false, true) => busy(at, blocks[at]) + earlier + below,
                (false, false) => {
                    busy(at, blocks[at])
                        + earlier
                        + of_head
                        + blocks[at + 1..].iter().sum::<u64>()
                        + below
                }
            }
        });
        let passed = passed.max().unwrap_or(0);
        let lookups = gradients + 2 * row;
        let most = head.max(last_block).max(passed).max(lookups);
        // The update rule of a parameter takes more memory once all gradients exist, or with release, within the backward pass.
        let most = if release {
            most + optim.work_bytes()
        } else {
            most.max(gradients + optim.work_bytes())
        };
        let optimizer = optim.state_bytes() + optim.side_bytes();
        MemoryPlan {
            weights,
            base,
            gradients,
            optimizer,
            activations: most - gradients,
        }
    }
}
