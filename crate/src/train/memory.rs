//! Plans the bytes that a run takes on the device, before anything is allocated.

use burn::tensor::DType;

use super::loss::MAX_LOGITS_BYTES;
use crate::config::{ModelConfig, Precision, TrainConfig};
use crate::device::DeviceLimits;
use crate::error::Result;
use crate::model::{Asked, Plan, planned_parameters};
use crate::optim::{Optim, ParamInfo};

/// Bytes by purpose at the peak of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryPlan {
    /// Parameters and tables of rotary positions.
    pub weights: u64,
    /// One f32 per trained value; with gradient release, those of one block at a time.
    pub gradients: u64,
    /// Moments, and APOLLO's orthogonal projectors.
    pub optimizer: u64,
    /// What the backward pass and the logits need in addition to `gradients` at the peak: activations are freed while gradients are made.
    pub activations: u64,
}

impl MemoryPlan {
    /// The sum.
    pub fn total(&self) -> u64 {
        self.weights + self.gradients + self.optimizer + self.activations
    }
}

/// Refuses a model with a tensor that cannot be bound to a kernel as a whole. Gradients are f32, whatever the weights are.
pub fn check_limits(model: &ModelConfig, limits: DeviceLimits) -> Result<()> {
    planned_parameters(model)?.iter().try_for_each(|(_, shape)| limits.check(4 * shape.iter().product::<usize>() as u64))
}

/// The memory that training a model of this shape with these settings takes.
pub fn memory_plan(model: &ModelConfig, train: &TrainConfig) -> Result<MemoryPlan> {
    let stored = |shape: &[usize]| if shape.len() > 1 && train.precision == Precision::Bf16 { DType::BF16 } else { DType::F32 };
    let plan = Plan::of(model)?;
    let info = |asked: &Asked| ParamInfo { name: asked.name.clone(), shape: asked.shape.clone(), dtype: stored(&asked.shape) };
    let parameters: Vec<ParamInfo> = plan.parameters.iter().map(info).collect();
    let optim = Optim::new(train, &parameters)?;
    let (mut weights, mut blocks) = (4 * plan.rotary_values as u64, vec![0; model.num_hidden_layers]);
    // Gradients outside the blocks; among them those that the head's backward pass makes; among these the one that lookups add to.
    let (mut outside, mut of_head, mut tied) = (0, 0, 0);
    for (parameter, Asked { part, .. }) in parameters.iter().zip(&plan.parameters) {
        let elements = parameter.elements() as u64;
        weights += elements * parameter.dtype.size() as u64;
        let gradient = if optim.frozen(&parameter.name) { 0 } else { 4 * elements };
        match part.block() {
            Some(block) => blocks[block] += gradient,
            None => outside += gradient,
        }
        of_head += if part.in_head() { gradient } else { 0 };
        tied += if part.in_head() && part.is_table() { gradient } else { 0 };
    }
    let (all, largest) = (blocks.iter().sum::<u64>(), blocks.iter().copied().max().unwrap_or(0));
    let release = train.gradient_release;
    let gradients = if release { of_head.max(tied + largest).max(outside - of_head + tied) } else { outside + all };

    let by_block = release || train.gradient_checkpointing;
    let tokens = train.batch_size * train.seq_len;
    let floats = |per_token: usize| 4 * (tokens * per_token) as u64;
    let (row, block) = (floats(model.hidden_size), floats(plan.kept_per_token));
    let kept = model.num_hidden_layers as u64 * if by_block { row } else { block };
    let runs = tokens.div_ceil((MAX_LOGITS_BYTES / 4 / model.vocab_size).max(1)).max(1);
    let logits = 4 * (tokens.div_ceil(runs) * model.vocab_size) as u64;
    // A block in its backward pass: before the pass through its last linear layer, or when all its gradients exist.
    let mlp = floats(model.intermediate_size) + 4 * (model.intermediate_size * model.hidden_size) as u64;
    // The tape of the head goes with its view of the model, which only gradient release drops before the blocks.
    let tape = if release { 0 } else { row };
    let busy = (block + tape + mlp).max(largest + 5 * row);
    // Sums of earlier batches. The gradients of this one are added when all of them exist, or with checkpointing those of a block.
    let earlier = if train.gradient_accumulation_steps > 1 { gradients } else { 0 };
    // Includes the last block's output, its norm, and the gradient of the norm.
    let head = earlier + of_head + kept + 3 * row + logits;
    let last_block = if by_block { earlier + kept + busy + if release { tied } else { of_head } } else { 0 };
    let first_block = busy
        + match (release, by_block && earlier > 0) {
            (true, _) => tied,
            (false, true) => earlier,
            (false, false) => earlier + of_head + all - blocks[0],
        };
    let lookups = gradients + 2 * row;
    let most = head.max(last_block).max(first_block).max(lookups);
    let optimizer = optim.state_bytes() + optim.side_bytes();
    Ok(MemoryPlan { weights, gradients, optimizer, activations: most - gradients })
}
