//! Computes the training loss as a sum over counted targets, in nats. The caller divides by their number, for the mean.

use burn::tensor::{Int, Tensor};

use super::device_batch::DeviceBatch;
use crate::data::Batch;
use crate::error::Result;
use crate::model::Model;

/// Maximum size of the logits computed at once; their gradient takes as much again. A longer batch goes through the head in runs of rows.
pub(super) const MAX_LOGITS_BYTES: usize = 64 << 20;

/// Returns the sum of the losses of the counted targets of `batch`, in nats, shape `[1]`.
///
/// # Errors
/// As [`DeviceBatch::new`].
pub fn loss_sum(model: &Model, batch: &Batch) -> Result<Tensor<1>> {
    let (x, targets) = before_head(model, batch)?;
    Ok(head_loss_sum(model, x, targets))
}

/// Returns the same sum and the number of targets that are the arg max of their logits (the lowest id among equals), shape `[2]`.
pub(super) fn evaluation_sums(model: &Model, batch: &Batch) -> Result<Tensor<1>> {
    let (x, targets) = before_head(model, batch)?;
    Ok(model.head_evaluation(x, targets, rows_at_once(model)))
}

/// Returns the last block's output `[N, C]` and the targets `[N]` of a batch.
fn before_head(model: &Model, batch: &Batch) -> Result<(Tensor<2>, Tensor<1, Int>)> {
    let device_batch = DeviceBatch::new(model, batch)?;
    let span = device_batch.span();
    let x = model.blocks(
        0..model.config().num_hidden_layers,
        model.embed(device_batch.ids.clone(), span),
        span,
    );
    Ok((x, device_batch.targets))
}

fn rows_at_once(model: &Model) -> usize {
    MAX_LOGITS_BYTES / 4 / model.config().vocab_size
}

/// Returns the sum of the token losses from the last block's output. `x [N, C]`, `targets [N]` → `[1]`.
pub fn head_loss_sum(model: &Model, x: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<1> {
    model.head_loss(x, targets, rows_at_once(model))
}
