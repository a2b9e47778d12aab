//! Plans the bytes that a run takes on the device, before anything is allocated.

use burn::tensor::DType;

use super::constants::{Constants, StoredForms};
use super::coordinates::{Coordinates, Placed};
use super::loss::MAX_LOGITS_BYTES;
use crate::bundle::Bundle;
use crate::config::{ModelConfig, Precision, TrainConfig};
use crate::error::Result;
use crate::model::{Adaptation, Asked, Kind, Plan, files_form};
use crate::ops::linear::SLICE;
use crate::ops::loss::head::HeadPlan;
use crate::optim::{Optim, ParamInfo};

/// Bytes by purpose at the peak of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryPlan {
    /// Parameters, the constants beside an adapter, and tables of rotary positions.
    pub weights: u64,
    /// Those of `weights` that are not trained: the constants beside an adapter, and tables of rotary positions.
    pub base: u64,
    /// One f32 per trained value; with gradient release, those of one block at a time.
    pub gradients: u64,
    /// Moments, and APOLLO's orthogonal projectors.
    pub optimizer: u64,
    /// What the backward pass and the logits need in addition to `gradients` at the peak: activations are freed while gradients are made.
    /// A software adapter takes more for two parts of matrices that it transposes: 1 MiB each, or 128 rows of a matrix wider than 2048.
    pub activations: u64,
}

impl MemoryPlan {
    /// The sum.
    pub fn total(&self) -> u64 {
        self.weights + self.gradients + self.optimizer + self.activations
    }
}

/// Values per token between the two factors of all targets, which are kept until their block has had its backward pass.
fn ranks(trained: &[Asked]) -> usize {
    let first = trained.iter().filter(|asked| matches!(asked.kind, Kind::Uniform | Kind::Gaussian));
    first.map(|asked| asked.shape[0]).sum()
}

/// The memory that training a model of this shape with these settings takes; `base` are its files, where an adapter leaves them as they are.
pub fn memory_plan(model: &ModelConfig, train: &TrainConfig, base: Option<&Bundle>) -> Result<MemoryPlan> {
    memory_plan_of(model, train, &files_form(base))
}

/// The same of a base whose matrices are `stored` in these forms. Where only some blocks train in a step, it is that of the step that takes
/// most.
pub fn memory_plan_of(model: &ModelConfig, train: &TrainConfig, stored: &StoredForms<'_>) -> Result<MemoryPlan> {
    let constants = Constants { storage: train.base_storage, stored };
    let stored = |shape: &[usize]| if shape.len() > 1 && train.precision == Precision::Bf16 { DType::BF16 } else { DType::F32 };
    let plan = Plan::of(model, Adaptation::of_run(train, model)?.as_ref())?;
    let info = |asked: &Asked| ParamInfo {
        name: asked.name.clone(),
        shape: asked.shape.clone(),
        dtype: stored(&asked.shape),
        outside_blocks: asked.part.block().is_none(),
    };
    let (trained, constant): (Vec<Asked>, Vec<Asked>) = plan.parameters.iter().cloned().partition(|asked| asked.trained);
    let parameters: Vec<ParamInfo> = trained.iter().map(info).collect();
    let mut optim = Optim::new(train, &parameters)?;
    let base = constant.iter().map(|asked| constants.bytes(asked)).sum::<u64>() + 4 * plan.rotary_values as u64;
    let weights = base + parameters.iter().map(|parameter| (parameter.elements() * parameter.dtype.size()) as u64).sum::<u64>();
    let run =
        Run { model, train, plan: &plan, beside_adapter: !constant.is_empty(), parameters: &parameters, trained: &trained, base, weights };
    let placed = trained.iter().map(|asked| Placed { name: &asked.name, part: asked.part, is_vector: asked.shape.len() == 1 });
    let Some(coordinates) = Coordinates::of_run(train, placed, &|name| optim.frozen(name))? else { return Ok(run.step(&optim)) };
    let steps = coordinates.turns().map(|active| {
        optim.rest(1, &|name| coordinates.rests(name, active));
        run.step(&optim)
    });
    Ok(steps.max_by_key(MemoryPlan::total).expect("some blocks train"))
}

/// What is the same in every step of a run.
struct Run<'a> {
    model: &'a ModelConfig,
    train: &'a TrainConfig,
    plan: &'a Plan,
    beside_adapter: bool,
    parameters: &'a [ParamInfo],
    trained: &'a [Asked],
    base: u64,
    weights: u64,
}

impl Run<'_> {
    /// The plan of a step in which `optim` trains what is neither frozen nor at rest.
    fn step(&self, optim: &Optim) -> MemoryPlan {
        let &Self { model, train, plan, base, weights, .. } = self;
        let layers = model.num_hidden_layers;
        let mut blocks = vec![0; layers];
        // Gradients outside the blocks; among them those that the head's backward pass makes; among these the one that lookups add to.
        let (mut outside, mut of_head, mut tied, mut tables) = (0, 0, 0, false);
        for (parameter, Asked { part, .. }) in self.parameters.iter().zip(self.trained) {
            let gradient = if optim.frozen(&parameter.name) { 0 } else { 4 * parameter.elements() as u64 };
            match part.block() {
                Some(block) => blocks[block] += gradient,
                None => outside += gradient,
            }
            of_head += if part.in_head() { gradient } else { 0 };
            tied += if part.in_head() && part.is_table() { gradient } else { 0 };
            tables |= part.is_table() && gradient > 0;
        }
        // The lowest block that the backward pass reaches, and how many it runs through.
        let lowest = if tables { 0 } else { blocks.iter().position(|&gradient| gradient > 0).unwrap_or(layers) };
        let reached = (layers - lowest) as u64;
        let (all, largest) = (blocks.iter().sum::<u64>(), blocks.iter().copied().max().unwrap_or(0));
        let release = train.gradient_release;
        let gradients = if release { of_head.max(tied + largest).max(outside - of_head + tied) } else { outside + all };

        let by_block = release || train.gradient_checkpointing;
        let tokens = train.batch_size * train.seq_len;
        let floats = |per_token: usize| 4 * (tokens * per_token) as u64;
        let (row, block) = (floats(model.hidden_size), floats(plan.kept_per_token));
        let kept = reached * if by_block { row } else { block } + floats(ranks(self.trained));
        let plan_of_head = HeadPlan { rows: (MAX_LOGITS_BYTES / 4 / model.vocab_size).max(1), needs: [true; 2] };
        let rows = plan_of_head.rows_of_a_run(tokens);
        // The gradient of the input of a wide product is added up in slices, each of which is a row of that gradient.
        let slices = |width: usize| Some(width.div_ceil(SLICE)).filter(|slices| *slices > 1).unwrap_or(0);
        let logits = 4 * (rows * (model.vocab_size + slices(model.vocab_size) * model.hidden_size)) as u64;
        // The tape of a head that is trained goes with its view of the model, which only gradient release drops before the blocks.
        let tape = if release || outside == 0 { 0 } else { row };
        // A block in its backward pass: before the pass through its last linear layer, or when all its gradients exist.
        let busy = |gradient: u64| {
            let trains_mlp = !self.beside_adapter && gradient > 0;
            let gradient_of_mlp = if trains_mlp { 4 * (model.intermediate_size * model.hidden_size) as u64 } else { 0 };
            let mlp = floats(model.intermediate_size) + gradient_of_mlp;
            (block + tape.max(slices(model.intermediate_size) as u64 * row) + mlp).max(gradient + 5 * row)
        };
        // Sums of earlier batches. The gradients of this one are added when all of them exist, or with checkpointing those of a block.
        let earlier = if train.gradient_accumulation_steps > 1 { gradients } else { 0 };
        // Includes the last block's output, its norm, and the gradient of the norm.
        let head = earlier + of_head + kept + 3 * row + logits;
        let of_last = blocks.last().copied().filter(|_| reached > 0);
        let last_block = match of_last {
            Some(gradient) if by_block => earlier + kept + busy(gradient) + if release { tied } else { of_head },
            _ => 0,
        };
        // A block on the way down: gradients of those above exist, inputs or activations of those below are kept.
        let passed = (lowest..layers).map(|at| {
            let below = (at - lowest) as u64 * if by_block { row } else { block };
            match (release, by_block && earlier > 0) {
                (true, _) => busy(blocks[at]) + tied,
                (false, true) => busy(blocks[at]) + earlier + below,
                (false, false) => busy(blocks[at]) + earlier + of_head + blocks[at + 1..].iter().sum::<u64>() + below,
            }
        });
        let passed = passed.max().unwrap_or(0);
        let lookups = gradients + 2 * row;
        let most = head.max(last_block).max(passed).max(lookups);
        // The rule of a parameter takes more once all gradients exist, or with release, within the backward pass.
        let most = if release { most + optim.work_bytes() } else { most.max(gradients + optim.work_bytes()) };
        let optimizer = optim.state_bytes() + optim.side_bytes();
        MemoryPlan { weights, base, gradients, optimizer, activations: most - gradients }
    }
}
