//! Gradient release: the backward pass goes block by block, and the parameters of a block are updated before the gradients of the next
//! one are made (LOMO, arXiv:2306.09782). Only the gradients of one block and that of a tied embedding exist at once.

use burn::tensor::Tensor;

use super::gradients::{Harvest, NamedGradients, block_inputs, carry};
use super::loss::head_loss_sum;
use super::trainer::Trainer;
use crate::data::Batch;
use crate::error::{Error, Result};
use crate::kernels::{Buffer, read_f32};
use crate::model::{Model, Span};
use crate::optim::sum_of_squares;

impl Trainer {
    /// One step on `batch`: mean loss and gradient norm. The loss is checked before anything changes; a norm that is not finite is only
    /// known after parameters have changed, and the caller has to refuse it.
    pub(super) async fn released_step(&mut self, batch: &Batch, step: u64, learning_rate: f64) -> Result<(f64, f64)> {
        let scale = 1.0 / batch.counted().max(1) as f64;
        let model = self.model();
        let starts = model.starts_tensor(batch.document_starts.as_deref());
        let span = Span { document_starts: starts.as_ref(), ..Span::whole(batch.batch_size, batch.seq_len) };
        model.check_span(span)?;
        let layers = model.config().num_hidden_layers;
        let mut inputs = block_inputs(model, model.embed(model.token_tensor(&batch.inputs)?, span), span);

        let leaf = |x: Option<Tensor<2>>| Tensor::<2>::from_inner(x.expect("one input per block and one of the head")).require_grad();
        let mut held = NamedGradients::new();
        let input = leaf(inputs.pop());
        let view = self.part(None);
        let starts = view.starts_tensor(batch.document_starts.as_deref());
        let tracked_span = Span { document_starts: starts.as_ref(), ..span };
        let loss = head_loss_sum(&view, input.clone(), view.target_tensor(&batch.targets)?);
        let value = f64::from(read_f32(loss.clone().inner()).await?[0]) * scale;
        if !value.is_finite() {
            return Err(Error::NonFinite { step, tensor: "loss", value });
        }
        let mut gradients = (loss * scale).backward();
        let mut upstream = input.grad_remove(&mut gradients);
        view.visit(&mut Harvest { gradients: &mut gradients, sums: &mut held });
        drop(view);
        let ready = held.extract_if(.., |name, _| !Model::is_embedding(name)).collect();
        let mut squares = Vec::from_iter(self.release(ready, learning_rate)?);

        for layer in (0..layers).rev() {
            let input = leaf(inputs.pop());
            let Some(gradient) = upstream.take() else { break };
            let view = self.part(Some(layer));
            let mut gradients = carry(view.block(layer, input.clone(), tracked_span, None), gradient);
            upstream = input.grad_remove(&mut gradients);
            let mut ready = NamedGradients::new();
            view.visit(&mut Harvest { gradients: &mut gradients, sums: &mut ready });
            drop(view);
            squares.extend(self.release(ready, learning_rate)?);
        }

        let view = self.part(None);
        if let Some(gradient) = upstream {
            view.embed_backward(view.token_tensor(&batch.inputs)?, tracked_span, &gradient, &mut held);
        }
        drop(view);
        squares.extend(self.release(held, learning_rate)?);
        let squares = if squares.is_empty() { Vec::new() } else { read_f32(Tensor::cat(squares, 0)).await? };
        Ok((value, squares.into_iter().map(f64::from).sum::<f64>().sqrt()))
    }

    /// The model with only the trained parameters of one block, or of what is outside the blocks, as leaves.
    fn part(&self, block: Option<usize>) -> Model {
        self.model().tracked(&|name| self.optim().frozen(name) || Model::block_of(name) != block)
    }

    /// Updates the parameters whose gradients are complete. Returns the sum of squares of these gradients.
    fn release(&mut self, gradients: NamedGradients, learning_rate: f64) -> Result<Option<Tensor<1>>> {
        let squares = sum_of_squares(gradients.values().map(|g| (Buffer::from(g.clone()), g.dims()[0])).collect())?;
        self.update(gradients, learning_rate, 1.0);
        Ok(squares)
    }
}
