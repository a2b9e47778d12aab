//! Gradient release: the backward pass goes block by block, and the parameters of a block are updated before the gradients of the next
//! one are made (LOMO, arXiv:2306.09782). Only the gradients of one block and that of a tied embedding exist at once.

use std::sync::Arc;

use burn::tensor::Tensor;

use super::backward::{NamedGradients, Reach, Scale, Sink, Walk};
use super::device_batch::DeviceBatch;
use super::trainer::Trainer;
use crate::data::Batch;
use crate::error::{Error, Result};
use crate::gpu::{Buffer, read_f32};
use crate::model::{Model, Part};
use crate::ops::DropoutStep;
use crate::optim::{Gate, sum_of_squares};

/// Updates parameters as soon as their gradients are complete.
struct Release<'a> {
    trainer: &'a mut Trainer,
    learning_rate: f64,
    gate: Gate,
    held: NamedGradients,
    /// Sums of squares of the gradients that were released.
    squares: Vec<Tensor<1>>,
}

impl Sink for Release<'_> {
    fn view(&self, block: Option<usize>) -> Arc<Model> {
        let (model, optim) = (self.trainer.model(), self.trainer.optim());
        Arc::new(
            model.tracked(&|name| {
                optim.frozen(name) || model.part(name).and_then(Part::block) != block
            }),
        )
    }

    fn sums(&mut self) -> &mut NamedGradients {
        &mut self.held
    }

    fn complete(&mut self, tables: bool) -> Result<()> {
        let model = self.trainer.model();
        let ready: NamedGradients = self
            .held
            .extract_if(.., |name, _| {
                tables || !model.part(name).is_some_and(Part::is_table)
            })
            .collect();
        let squares = sum_of_squares(
            ready
                .values()
                .map(|g| (Buffer::from(g.clone()), g.dims()[0]))
                .collect(),
        )?;
        self.squares.extend(squares.map(|squares| squares.sum));
        self.trainer.update(ready, self.learning_rate, &self.gate);
        Ok(())
    }
}

impl Trainer {
    /// Runs one step on `batch`; returns mean loss and gradient norm. The loss is checked before anything changes; a norm that is not
    /// finite is known only after parameters have changed, and the caller has to refuse it.
    pub(super) async fn released_step(
        &mut self,
        batch: &Batch,
        step: u64,
        learning_rate: f64,
    ) -> Result<(f64, f64)> {
        let scale = 1.0 / batch.counted().max(1) as f64;
        let gate = Gate::open(1.0, self.model().device());
        let mut sink = Release {
            trainer: self,
            learning_rate,
            gate,
            held: NamedGradients::new(),
            squares: Vec::new(),
        };
        let (model, optim) = (sink.trainer.model(), sink.trainer.optim());
        let reach = Reach::of(model, &|name| optim.frozen(name));
        let device_batch = DeviceBatch::new(model, batch)?.at(Some(DropoutStep {
            step,
            micro_batch: 0,
        }));
        let walk = Walk::forward(model, &sink, device_batch, true, reach);
        let value = f64::from(read_f32(walk.loss()).await?[0]) * scale;
        if !value.is_finite() {
            return Err(Error::NonFinite {
                step,
                tensor: "loss".into(),
                value,
            });
        }
        walk.backward(Scale::Fixed(scale), &mut sink)?;
        let squares = if sink.squares.is_empty() {
            Vec::new()
        } else {
            read_f32(Tensor::cat(sink.squares, 0)).await?
        };
        Ok((
            value,
            squares.into_iter().map(f64::from).sum::<f64>().sqrt(),
        ))
    }
}
