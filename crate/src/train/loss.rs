//! The training loss as a sum over counted targets, in nats. The caller divides by their number, for the mean.

use burn::tensor::{Int, Tensor};

use super::place::Placed;
use crate::data::Batch;
use crate::error::Result;
use crate::model::Model;

/// Maximum size of the logits computed at once; their gradient takes as much. A longer batch goes through the head in runs of rows.
pub(super) const MAX_LOGITS_BYTES: usize = 64 << 20;

/// Sum of the losses of the counted targets of `batch`, in nats. → [1]
pub fn loss_sum(model: &Model, batch: &Batch) -> Result<Tensor<1>> {
    let placed = Placed::new(model, batch)?;
    let span = placed.span();
    let x = model.blocks(0..model.config().num_hidden_layers, model.embed(placed.ids.clone(), span), span);
    Ok(head_loss_sum(model, x, placed.targets))
}

/// Sum of the token losses from the last block's output. x [N, C], targets [N] → [1].
pub fn head_loss_sum(model: &Model, x: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<1> {
    model.head_loss(x, targets, MAX_LOGITS_BYTES / 4 / model.config().vocab_size)
}
