//! Runs the backward pass from the head down to the lowest part that trains, and collects the gradients.

use std::collections::BTreeMap;
use std::sync::Arc;

use burn::tensor::{Gradients, Tensor};

use super::device_batch::DeviceBatch;
use super::loss::head_loss_sum;
use crate::data::Batch;
use crate::error::Result;
use crate::model::{Model, Part, Products, Span};
use crate::ops::DropoutStep;
use crate::parameters::ParamVisitor;

/// Gradients by state-dict name, each flattened to `[elements]`, f32.
pub type NamedGradients = BTreeMap<String, Tensor<1>>;

/// Receiver of the gradients of a [`Walk`].
pub(super) trait Sink {
    /// Returns a model in which the trained parameters of this block are leaves; with `None`, those outside the blocks.
    fn view(&self, block: Option<usize>) -> Arc<Model>;

    /// Returns the sums that the gradients are added to.
    fn sums(&mut self) -> &mut NamedGradients;

    /// Marks the sums as complete for this batch, except those of the tables unless `tables` is set.
    fn complete(&mut self, tables: bool) -> Result<()>;
}

/// Depth that a backward pass has to reach: nothing below it trains.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach {
    /// The lowest block; the number of blocks if only the head trains.
    block: usize,
    /// True if the pass reaches the tables, below all blocks.
    tables: bool,
}

impl Reach {
    pub fn of(model: &Model, frozen: &dyn Fn(&str) -> bool) -> Self {
        let trained = || {
            model
                .parts()
                .filter(|(name, _)| !frozen(name))
                .map(|(_, part)| part)
        };
        let tables = trained().any(Part::is_table);
        let lowest = trained()
            .filter_map(Part::block)
            .min()
            .unwrap_or(model.config().num_hidden_layers);
        Self {
            block: if tables { 0 } else { lowest },
            tables,
        }
    }
}

/// A batch after its forward pass.
pub(super) struct Walk {
    reach: Reach,
    device_batch: DeviceBatch,
    /// Input of each block that is run again for its backward pass, from the lowest that the pass reaches.
    inputs: Vec<Tensor<2>>,
    /// Low-rank products that each of these blocks keeps in addition to its input.
    products: Vec<Products>,
    /// View and input of the part that was recorded: the head, or everything from the lowest block that the backward pass reaches.
    view: Arc<Model>,
    input: Tensor<2>,
    loss: Tensor<1>,
}

fn leaf(x: Tensor<2>) -> Tensor<2> {
    Tensor::from_inner(x).require_grad()
}

/// Adds the gradients of the view's parameters to `sums`; returns the gradient of `input`.
fn harvest(
    view: &Model,
    mut gradients: Gradients,
    input: &Tensor<2>,
    sums: &mut NamedGradients,
) -> Option<Tensor<2>> {
    struct Harvest<'a> {
        gradients: &'a mut Gradients,
        sums: &'a mut NamedGradients,
    }
    impl ParamVisitor for Harvest<'_> {
        fn visit<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) {
            let elements = tensor.dims().iter().product::<usize>();
            let Some(gradient) = tensor.grad_remove(self.gradients) else {
                return;
            };
            let gradient = gradient.reshape([elements]);
            let sum = match self.sums.remove(name) {
                Some(sum) => sum + gradient,
                None => gradient,
            };
            self.sums.insert(name.to_string(), sum);
        }
    }
    let upstream = input.grad_remove(&mut gradients);
    view.visit(&mut Harvest {
        gradients: &mut gradients,
        sums,
    });
    upstream
}

/// Factor of a loss.
pub(super) enum Scale {
    /// A number.
    Fixed(f64),
    /// A number on the device, `[1]`, from which a recorded step reads the factor of each run.
    Given(Box<Tensor<1>>),
}

impl Walk {
    /// Runs the forward pass of a batch whose backward pass has this `reach`. With `recompute`, each block within reach keeps only its
    /// input (and its low-rank products) and is run again when its gradient is needed.
    pub fn forward(
        model: &Model,
        sink: &impl Sink,
        device_batch: DeviceBatch,
        recompute: bool,
        reach: Reach,
    ) -> Self {
        let span = device_batch.span();
        let layers = model.config().num_hidden_layers;
        // Blocks below the reach run in a model that is not tracked: the tape of a tracked block would be kept until a backward pass.
        let mut x = model.blocks(
            0..reach.block,
            model.embed(device_batch.ids.clone(), span),
            span,
        );
        let (mut inputs, mut products) = (Vec::new(), Vec::new());
        let apart = if recompute { layers } else { reach.block };
        for layer in reach.block..apart {
            let kept = Products::default();
            let output = model.block(
                layer,
                x.clone(),
                Span {
                    products: Some(&kept),
                    ..span
                },
                None,
            );
            inputs.push(std::mem::replace(&mut x, output));
            products.push(kept.again());
        }
        let device_batch = device_batch.tracked();
        let view = sink.view(None);
        // The tables are not recorded: their gradient is added last, to the sum that a tied head has begun.
        let input = if reach.tables || reach.block < apart {
            leaf(x)
        } else {
            Tensor::from_inner(x)
        };
        let output = view.blocks(apart..layers, input.clone(), device_batch.span());
        let loss = head_loss_sum(&view, output, device_batch.targets.clone());
        Self {
            reach,
            device_batch,
            inputs,
            products,
            view,
            input,
            loss,
        }
    }

    /// Returns the sum of token losses, `[1]`.
    pub fn loss(&self) -> Tensor<1> {
        self.loss.clone().inner()
    }

    /// Runs the backward pass of scale·loss.
    ///
    /// # Errors
    /// The errors of `sink`.
    pub fn backward(self, scale: Scale, sink: &mut impl Sink) -> Result<()> {
        let Self {
            reach,
            device_batch,
            mut inputs,
            mut products,
            view,
            input,
            loss,
        } = self;
        let loss = match scale {
            Scale::Fixed(scale) => loss * scale,
            Scale::Given(scale) => loss * Tensor::from_inner(*scale),
        };
        let mut upstream = harvest(&view, loss.backward(), &input, sink.sums());
        drop((view, input));
        sink.complete(false)?;
        while let Some(input) = inputs.pop() {
            let Some(gradient) = upstream.take() else {
                break;
            };
            let layer = reach.block + inputs.len();
            let ends = inputs.is_empty() && !reach.tables;
            let (view, input) = (
                sink.view(Some(layer)),
                if ends {
                    Tensor::from_inner(input)
                } else {
                    leaf(input)
                },
            );
            let kept = products.pop();
            let output = view.block(
                layer,
                input.clone(),
                Span {
                    products: kept.as_ref(),
                    ..device_batch.span()
                },
                None,
            );
            // The gradient of Σ y ⊙ g with respect to y is g.
            let gradients = (output * Tensor::from_inner(gradient)).sum().backward();
            upstream = harvest(&view, gradients, &input, sink.sums());
            drop((view, input));
            sink.complete(false)?;
        }
        if let Some(gradient) = upstream {
            let view = sink.view(None);
            view.embed_backward(
                device_batch.ids.clone(),
                device_batch.span(),
                &gradient,
                sink.sums(),
            );
        }
        sink.complete(true)
    }
}

/// Sink that adds up the gradients of several batches.
struct Sum<'a> {
    tracked: Arc<Model>,
    sums: &'a mut NamedGradients,
}

impl Sink for Sum<'_> {
    fn view(&self, _block: Option<usize>) -> Arc<Model> {
        self.tracked.clone()
    }

    fn sums(&mut self) -> &mut NamedGradients {
        self.sums
    }

    fn complete(&mut self, _tables: bool) -> Result<()> {
        Ok(())
    }
}

/// Adds scale·∂(sum of token losses)/∂p of `batch` to `sums`; returns the unscaled sum of token losses, shape `[1]`. At a `dropout_step` of
/// training, dropout is applied.
///
/// # Errors
/// As [`DeviceBatch::new`].
pub fn accumulate(
    model: &Model,
    batch: &Batch,
    dropout_step: Option<DropoutStep>,
    scale: f64,
    recompute: bool,
    frozen: &dyn Fn(&str) -> bool,
    sums: &mut NamedGradients,
) -> Result<Tensor<1>> {
    accumulate_on_device(
        model,
        DeviceBatch::new(model, batch)?.at(dropout_step),
        Scale::Fixed(scale),
        recompute,
        frozen,
        sums,
    )
}

/// Runs [`accumulate`] for a batch that is on the device.
pub(super) fn accumulate_on_device(
    model: &Model,
    device_batch: DeviceBatch,
    scale: Scale,
    recompute: bool,
    frozen: &dyn Fn(&str) -> bool,
    sums: &mut NamedGradients,
) -> Result<Tensor<1>> {
    let mut sink = Sum {
        tracked: Arc::new(model.tracked(frozen)),
        sums,
    };
    let walk = Walk::forward(
        model,
        &sink,
        device_batch,
        recompute,
        Reach::of(model, frozen),
    );
    let loss = walk.loss();
    walk.backward(scale, &mut sink)?;
    Ok(loss)
}
