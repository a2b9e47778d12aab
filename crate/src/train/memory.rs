//! Bytes that a run takes on the device, planned before anything is allocated.

use std::collections::BTreeMap;

use burn::tensor::DType;

use super::loss::MAX_LOGITS_BYTES;
use crate::config::{ModelConfig, Precision, TrainConfig};
use crate::device::DeviceLimits;
use crate::error::Result;
use crate::model::{Model, planned_parameters};
use crate::optim::{Optim, ParamInfo};

/// Bytes by purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryPlan {
    /// Parameters.
    pub weights: u64,
    /// One f32 per trained value.
    pub gradients: u64,
    /// Moments.
    pub optimizer: u64,
    /// What the backward pass needs, and the logits. An estimate.
    pub activations: u64,
}

impl MemoryPlan {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.weights + self.gradients + self.optimizer + self.activations
    }
}

/// Refuses a model of which no kernel could see a tensor whole. Gradients are f32, whatever the weights are.
pub fn check_limits(model: &ModelConfig, limits: DeviceLimits) -> Result<()> {
    planned_parameters(model)?.iter().try_for_each(|(_, shape)| limits.check(4 * shape.iter().product::<usize>() as u64))
}

/// What training a model of this shape with these settings takes.
pub fn memory_plan(model: &ModelConfig, train: &TrainConfig) -> Result<MemoryPlan> {
    let stored = |shape: &[usize]| if shape.len() > 1 && train.precision == Precision::Bf16 { DType::BF16 } else { DType::F32 };
    let info = |(name, shape): (String, Vec<usize>)| ParamInfo { dtype: stored(&shape), name, shape };
    let parameters: Vec<ParamInfo> = planned_parameters(model)?.into_iter().map(info).collect();
    let optim = Optim::new(train, &parameters)?;
    let (mut weights, mut gradients) = (0, BTreeMap::new());
    for parameter in &parameters {
        let elements = parameter.elements() as u64;
        weights += elements * parameter.dtype.size() as u64;
        if !optim.frozen(&parameter.name) {
            *gradients.entry(Model::block_of(&parameter.name)).or_insert(0) += elements * 4;
        }
    }
    let outside = gradients.remove(&None).unwrap_or(0);
    let blocks = gradients.into_values();
    let gradients = outside + if train.gradient_release { blocks.max().unwrap_or(0) } else { blocks.sum() };
    let tokens = (train.batch_size * train.seq_len) as u64;
    let hidden = model.hidden_size as u64;
    // Per token and layer: two norms, q, k, v, the attention's output and its two numbers per head, two residual sums, three MLP tensors.
    let per_layer = 8 * hidden + 3 * model.intermediate_size as u64 + 2 * model.num_attention_heads as u64;
    let layers = if train.gradient_checkpointing || train.gradient_release { 1 } else { model.num_hidden_layers as u64 };
    let inputs = model.num_hidden_layers as u64 * hidden;
    let logits = (tokens * model.vocab_size as u64).min(MAX_LOGITS_BYTES as u64 / 4);
    let activations = 4 * (tokens * (layers * per_layer + inputs) + 2 * logits);
    Ok(MemoryPlan { weights, gradients, optimizer: optim.state_bytes(), activations })
}
