//! Estimates what a run needs, without a device: bytes by purpose, and the limits within which it stays.

use serde::{Serialize, Serializer};

use super::constants::{Constants, LargestTensor, StoredForms, takes_parts, widest_activation};
use super::memory::memory_plan_of;
use crate::config::{ModelConfig, TrainConfig};
use crate::error::{Error, Result};
use crate::model::{Adaptation, Plan};

/// Largest buffers that can be bound to a kernel: in every browser on every device; on software adapters; on most GPUs.
const BUFFERS: [(&str, u64); 3] = [
    ("buffers of 128 MiB", 128 << 20),
    ("buffers of 1 GiB", 1 << 30),
    ("buffers of 2 GiB", (2 << 30) - 4),
];
/// Memory sizes of GPUs in bytes.
const MEMORIES: [(&str, u64); 7] = [
    ("memory of 2 GB", 2_000_000_000),
    ("memory of 4 GB", 4_000_000_000),
    ("memory of 6 GB", 6_000_000_000),
    ("memory of 8 GB", 8_000_000_000),
    ("memory of 12 GB", 12_000_000_000),
    ("memory of 16 GB", 16_000_000_000),
    ("memory of 24 GB", 24_000_000_000),
];

/// Bytes on the device by purpose. They add up to what a run needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct EstimateParts {
    /// Weights, if all of them are trained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<u64>,
    /// Constants of a model with an adapter, as they are stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<u64>,
    /// Factors of an adapter, and the modules that it trains in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adapter: Option<u64>,
    /// Gradients that exist at the same time.
    pub grads: u64,
    /// State of the update rule.
    pub optimizer: u64,
    /// Additional memory that the passes through the model need at the peak of a step.
    pub activations: u64,
}

/// Memory that a run needs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Estimate {
    /// Number of trained values.
    pub trained: u64,
    /// Bytes by purpose.
    pub parts: EstimateParts,
    /// Bytes in use at the peak of a step.
    pub need_bytes: u64,
    /// Tensor that takes the most bytes. A table may lie in parts.
    pub largest_tensor: LargestTensor,
    /// Names of limits, each with whether the run stays within it: every buffer within that of a device, and all of it within the memory of
    /// a GPU with a tenth to spare, which allocators keep in reserve.
    #[serde(serialize_with = "as_map")]
    pub fits: Vec<(&'static str, bool)>,
}

fn as_map<S: Serializer>(
    limits: &[(&'static str, bool)],
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_map(limits.iter().copied())
}

/// Estimates what training a model of this shape with these settings needs, on a base whose matrices are `stored` in these forms. It opens
/// no device and reads no weights; the kernels are taken to be those of a GPU.
///
/// # Errors
/// [`Error::InvalidConfig`](crate::Error::InvalidConfig), [`Error::ContextExceeded`](crate::Error::ContextExceeded), and the errors of
/// [`Adaptation::of_run`].
pub fn estimate(
    model: &ModelConfig,
    train: &TrainConfig,
    stored: &StoredForms<'_>,
) -> Result<Estimate> {
    train.validate()?;
    if train.seq_len > model.max_position_embeddings {
        return Err(Error::ContextExceeded {
            found: train.seq_len,
            max: model.max_position_embeddings,
        });
    }
    let adaptation = Adaptation::of_run(train, model)?;
    let plan = Plan::of(model, adaptation.as_ref())?;
    let memory = memory_plan_of(model, train, stored, false)?;
    let constants = Constants {
        storage: train.base_storage,
        stored,
    };
    let takes_parts = takes_parts(train, &plan)?;
    let elements = |shape: &[usize]| shape.iter().map(|&dim| dim as u64).product::<u64>();
    let trained = plan
        .parameters
        .iter()
        .filter(|asked| asked.trained)
        .map(|asked| elements(&asked.shape))
        .sum();
    let beside = |bytes: u64| adaptation.is_some().then_some(bytes);
    let parts = EstimateParts {
        weights: if adaptation.is_none() {
            Some(memory.weights)
        } else {
            None
        },
        base: beside(memory.base),
        adapter: beside(memory.weights - memory.base),
        grads: memory.gradients,
        optimizer: memory.optimizer,
        activations: memory.activations,
    };
    let need = memory.total();
    let buffers = BUFFERS.into_iter().map(|(name, limit)| {
        let largest = constants.largest_bound(&plan, limit, &takes_parts);
        (name, largest.max(widest_activation(model, train)) <= limit)
    });
    let memories = MEMORIES
        .into_iter()
        .map(|(name, limit)| (name, need.saturating_add(need / 10) <= limit));
    Ok(Estimate {
        trained,
        parts,
        need_bytes: need,
        largest_tensor: constants.largest(&plan),
        fits: buffers.chain(memories).collect(),
    })
}
