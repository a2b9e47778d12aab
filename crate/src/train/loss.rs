//! The training loss as a sum over counted targets, in nats. The caller divides by their number, for the mean.

use burn::tensor::{Int, Tensor};

use crate::data::Batch;
use crate::error::Result;
use crate::model::{Model, Span};

/// Maximum size of the logits computed at once; their gradient takes as much. A longer batch goes through the head in runs of rows.
pub(super) const MAX_LOGITS_BYTES: usize = 64 << 20;

/// Sum of the losses of the counted targets of `batch`, in nats. → [1]
pub fn loss_sum(model: &Model, batch: &Batch) -> Result<Tensor<1>> {
    let starts = model.starts_tensor(batch.document_starts.as_deref());
    let span = Span { document_starts: starts.as_ref(), ..Span::whole(batch.batch_size, batch.seq_len) };
    model.check_span(span)?;
    let ids = model.token_tensor(&batch.inputs)?;
    let targets = model.target_tensor(&batch.targets)?;
    Ok(head_loss_sum(model, model.blocks(model.embed(ids, span), span), targets))
}

/// Sum of the token losses from the last block's output. x [N, C], targets [N] → [1].
pub fn head_loss_sum(model: &Model, x: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<1> {
    model.head_loss(x, targets, MAX_LOGITS_BYTES / 4 / model.config().vocab_size)
}
