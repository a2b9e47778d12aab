//! Places batches on the device.

use burn::tensor::{Int, Tensor};

use crate::data::Batch;
use crate::error::Result;
use crate::model::{Model, Span};
use crate::ops::DropoutStep;

/// Batch on a model's device, checked against the model: its length, its ids and its targets.
#[derive(Debug, Clone)]
pub struct DeviceBatch {
    /// Token ids `[B·T]`.
    pub ids: Tensor<1, Int>,
    /// Targets `[B·T]`; negative ones do not count.
    pub targets: Tensor<1, Int>,
    /// Starts of documents `[B·T]`, as in [`Span::document_starts`].
    document_starts: Option<Tensor<1, Int>>,
    dropout_step: Option<DropoutStep>,
    batch_size: usize,
    seq_len: usize,
}

impl DeviceBatch {
    /// Uploads `batch`.
    ///
    /// # Errors
    /// `model.context` for a sequence beyond the context, `model.token-range` for an id outside the vocabulary.
    pub fn new(model: &Model, batch: &Batch) -> Result<Self> {
        let inputs = Self::inputs(model, batch)?;
        Ok(Self::on(batch, |index| model.int_tensor(inputs[index])))
    }

    /// Returns the inputs that a batch has on the device: ids, targets, and the starts of documents if it has them. Refuses the batches
    /// that [`DeviceBatch::new`] refuses.
    pub(super) fn inputs<'a>(model: &Model, batch: &'a Batch) -> Result<Vec<&'a [i32]>> {
        model.check_span(Span::whole(batch.batch_size, batch.seq_len))?;
        model.check_tokens(&batch.inputs)?;
        model.check_targets(&batch.targets)?;
        Ok([&batch.inputs, &batch.targets]
            .into_iter()
            .chain(&batch.document_starts)
            .map(Vec::as_slice)
            .collect())
    }

    /// Creates a batch whose [`inputs`](Self::inputs) are these tensors.
    pub(super) fn on(batch: &Batch, input: impl Fn(usize) -> Tensor<1, Int>) -> Self {
        let Batch {
            batch_size,
            seq_len,
            ..
        } = *batch;
        let document_starts = batch.document_starts.as_ref().map(|_| input(2));
        Self {
            ids: input(0),
            targets: input(1),
            document_starts,
            dropout_step: None,
            batch_size,
            seq_len,
        }
    }

    /// Returns the same batch at a step of training.
    pub fn at(self, dropout_step: Option<DropoutStep>) -> Self {
        Self {
            dropout_step,
            ..self
        }
    }

    /// Returns the same tensors for a model that is [tracked](Model::tracked).
    pub fn tracked(self) -> Self {
        let Self {
            ids,
            targets,
            document_starts,
            ..
        } = self;
        let (ids, targets) = (Tensor::from_inner(ids), Tensor::from_inner(targets));
        Self {
            ids,
            targets,
            document_starts: document_starts.map(Tensor::from_inner),
            ..self
        }
    }

    /// Returns the positions of the batch.
    pub fn span(&self) -> Span<'_> {
        Span {
            document_starts: self.document_starts.as_ref(),
            dropout_step: self.dropout_step,
            ..Span::whole(self.batch_size, self.seq_len)
        }
    }
}
