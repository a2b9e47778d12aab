//! Gradients of every trained parameter, by name.

use std::collections::BTreeMap;

use burn::tensor::{Gradients, Int, Tensor};

use super::loss::head_loss_sum;
use crate::data::Batch;
use crate::error::Result;
use crate::model::{Model, ParamVisitor, Span};

/// Gradients by state-dict name, each flattened to [elements], f32.
pub type NamedGradients = BTreeMap<String, Tensor<1>>;

/// Takes the gradients of a tracked model's parameters out of `gradients` and adds them to `sums`.
pub(super) struct Harvest<'a> {
    pub(super) gradients: &'a mut Gradients,
    pub(super) sums: &'a mut NamedGradients,
}

/// Gradients of everything `output` was computed from, given the gradient of `output`.
pub(super) fn carry(output: Tensor<2>, gradient: Tensor<2>) -> Gradients {
    // The gradient of Σ y ⊙ g with respect to y is g.
    (output * Tensor::from_inner(gradient)).sum().backward()
}

impl ParamVisitor for Harvest<'_> {
    fn visit<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) {
        let elements = tensor.dims().iter().product::<usize>();
        let Some(gradient) = tensor.grad_remove(self.gradients) else { return };
        let gradient = gradient.reshape([elements]);
        let sum = match self.sums.remove(name) {
            Some(sum) => sum + gradient,
            None => gradient,
        };
        self.sums.insert(name.to_string(), sum);
    }
}

/// Adds scale·∂(sum of token losses)/∂p of `batch` to `sums`; returns the unscaled sum of token losses, shape [1].
pub fn accumulate(
    model: &Model,
    batch: &Batch,
    scale: f64,
    recompute: bool,
    frozen: &dyn Fn(&str) -> bool,
    sums: &mut NamedGradients,
) -> Result<Tensor<1>> {
    let tracked = model.tracked(frozen);
    let starts = tracked.starts_tensor(batch.document_starts.as_deref());
    let span = Span { document_starts: starts.as_ref(), ..Span::whole(batch.batch_size, batch.seq_len) };
    tracked.check_span(span)?;
    let ids = tracked.token_tensor(&batch.inputs)?;
    let targets = tracked.target_tensor(&batch.targets)?;
    // The gradient of the tables is added last, to the sum that a tied head has begun.
    let embedded = tracked.embed(ids.clone(), span);
    let trained = embedded.is_tracked();
    let embedded = Tensor::from_inner(embedded.inner());
    let embedded = if trained { embedded.require_grad() } else { embedded };
    let (value, gradient) = if recompute {
        let starts = model.starts_tensor(batch.document_starts.as_deref());
        let inputs = block_inputs(model, embedded.inner(), Span { document_starts: starts.as_ref(), ..span });
        backward_by_block(&tracked, inputs, span, targets, scale, sums)
    } else {
        backward(&tracked, embedded, span, targets, scale, sums)
    };
    if let Some(gradient) = gradient.filter(|_| trained) {
        tracked.embed_backward(ids, span, &gradient, sums);
    }
    Ok(value)
}

/// Computes the gradients of everything except the tables from the embedded tokens `input`. Returns the sum of token losses and the
/// gradient of `input`.
fn backward(
    tracked: &Model,
    input: Tensor<2>,
    span: Span<'_>,
    targets: Tensor<1, Int>,
    scale: f64,
    sums: &mut NamedGradients,
) -> (Tensor<1>, Option<Tensor<2>>) {
    let loss = head_loss_sum(tracked, tracked.blocks(input.clone(), span), targets);
    let value = loss.clone().inner();
    let mut gradients = (loss * scale).backward();
    tracked.visit(&mut Harvest { gradients: &mut gradients, sums });
    (value, input.grad_remove(&mut gradients))
}

/// The input of each block and, at the end, that of the head. `model` is not tracked: the tape of a block would be kept until a backward
/// pass.
pub(super) fn block_inputs(model: &Model, embedded: Tensor<2>, span: Span<'_>) -> Vec<Tensor<2>> {
    let mut inputs = vec![embedded];
    for layer in 0..model.config().num_hidden_layers {
        inputs.push(model.block(layer, inputs[layer].clone(), span, None));
    }
    inputs
}

/// As [`backward`], but keeps only the [`block_inputs`]: a block is run again when its gradient is needed.
fn backward_by_block(
    tracked: &Model,
    mut inputs: Vec<Tensor<2>>,
    span: Span<'_>,
    targets: Tensor<1, Int>,
    scale: f64,
    sums: &mut NamedGradients,
) -> (Tensor<1>, Option<Tensor<2>>) {
    let leaf = |x: Tensor<2>| Tensor::<2>::from_inner(x).require_grad();
    let mut harvest = |mut gradients: Gradients, input: &Tensor<2>| {
        let upstream = input.grad_remove(&mut gradients);
        tracked.visit(&mut Harvest { gradients: &mut gradients, sums });
        upstream
    };

    let (value, mut upstream) = {
        let last = leaf(inputs.pop().expect("the head has an input"));
        let loss = head_loss_sum(tracked, last.clone(), targets);
        (loss.clone().inner(), harvest((loss * scale).backward(), &last))
    };
    for layer in (0..tracked.config().num_hidden_layers).rev() {
        let input = leaf(inputs.pop().expect("one input per block"));
        let Some(gradient) = upstream.take() else { break };
        let output = tracked.block(layer, input.clone(), span, None);
        upstream = harvest(carry(output, gradient), &input);
    }
    (value, upstream)
}
