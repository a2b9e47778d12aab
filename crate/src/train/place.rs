//! Batches on the device.

use burn::tensor::{Int, Tensor};

use crate::data::Batch;
use crate::error::Result;
use crate::model::{Model, Span};
use crate::ops::Moment;

/// A batch on a model's device, checked against the model: its length, its ids and its targets.
#[derive(Debug, Clone)]
pub struct Placed {
    /// [B·T].
    pub ids: Tensor<1, Int>,
    /// [B·T]; negative ones do not count.
    pub targets: Tensor<1, Int>,
    /// [B·T], as [`Span::document_starts`].
    document_starts: Option<Tensor<1, Int>>,
    moment: Option<Moment>,
    batch_size: usize,
    seq_len: usize,
}

impl Placed {
    /// Uploads `batch`. Refuses a sequence beyond the context, and ids outside the vocabulary.
    pub fn new(model: &Model, batch: &Batch) -> Result<Self> {
        let Batch { batch_size, seq_len, .. } = *batch;
        model.check_span(Span::whole(batch_size, seq_len))?;
        let document_starts = model.starts_tensor(batch.document_starts.as_deref());
        let (ids, targets) = (model.token_tensor(&batch.inputs)?, model.target_tensor(&batch.targets)?);
        Ok(Self { ids, targets, document_starts, moment: None, batch_size, seq_len })
    }

    /// The same batch at a moment of training.
    pub fn at(self, moment: Option<Moment>) -> Self {
        Self { moment, ..self }
    }

    /// The same tensors for a model that is [tracked](Model::tracked).
    pub fn tracked(self) -> Self {
        let Self { ids, targets, document_starts, .. } = self;
        let (ids, targets) = (Tensor::from_inner(ids), Tensor::from_inner(targets));
        Self { ids, targets, document_starts: document_starts.map(Tensor::from_inner), ..self }
    }

    /// The positions of the batch.
    pub fn span(&self) -> Span<'_> {
        Span { document_starts: self.document_starts.as_ref(), moment: self.moment, ..Span::whole(self.batch_size, self.seq_len) }
    }
}
