//! Records a run of a subject with tabtune or with Burn's operations.

use std::collections::BTreeMap;

use burn::tensor::{Device as TensorDevice, Tensor};
use tabtune::Result;
use tabtune::config::Precision;
use tabtune::device::Device;
use tabtune::gpu::read_f32;
use tabtune::interrupt::Interrupt;
use tabtune::model::{Model, ParamVisitor};
use tabtune::train::{NamedGradients, Trainer, accumulate};
use tabtune_bench::stock::Stock;

use crate::subject::Subject;

/// Values by state-dict name.
pub type Named = BTreeMap<String, Vec<f32>>;

/// Record of a run.
#[derive(Debug, Clone)]
pub struct Track {
    /// Gradients of the mean loss in the first step.
    pub gradients: Named,
    /// Mean loss of each step, before its update.
    pub losses: Vec<f64>,
    /// Change of each parameter in the first step.
    pub first_changes: Named,
}

/// Trains with tabtune's kernels, or with their twins on the CPU.
///
/// # Errors
/// Errors of the model, the trainer and the device.
pub async fn by_trainer(subject: &Subject, device: &Device) -> Result<Track> {
    let model = Model::from_bundle(
        &subject.bundle,
        Precision::F32,
        &device.inner(),
        &Interrupt::none(),
    )
    .await?;
    let before = parameters(&model).await?;
    let Some(first) = subject.batches.first() else {
        return Ok(Track {
            gradients: Named::new(),
            losses: Vec::new(),
            first_changes: Named::new(),
        });
    };
    let mut sums = NamedGradients::new();
    accumulate(
        &model,
        first,
        None,
        1.0 / first.counted() as f64,
        false,
        &|_| false,
        &mut sums,
    )?;
    let mut gradients = Named::new();
    for (name, sum) in sums {
        gradients.insert(name, read_f32(sum).await?);
    }
    let mut trainer = Trainer::new(model, subject.dataset()?, subject.train.clone())?;
    let (mut losses, mut first_changes) = (Vec::new(), Named::new());
    for batch in &subject.batches {
        losses.push(trainer.step_on(std::slice::from_ref(batch)).await?.loss);
        if losses.len() == 1 {
            first_changes = changes(&before, parameters(trainer.model()).await?);
        }
    }
    Ok(Track {
        gradients,
        losses,
        first_changes,
    })
}

/// Trains with Burn's own operations, on an autodiff device of any kind.
///
/// # Errors
/// Errors of reading from the device.
pub async fn by_stock(subject: &Subject, device: TensorDevice) -> Result<Track> {
    let mut model = Stock::new(
        &subject.bundle.config,
        subject.stock.clone(),
        subject.weights.iter().cloned(),
        device,
    );
    let before = subject
        .weights
        .iter()
        .map(|(name, _, values)| (name.clone(), values.clone()))
        .collect();
    let (mut gradients, mut losses, mut first_changes) = (Named::new(), Vec::new(), Named::new());
    for batch in &subject.batches {
        if losses.is_empty() {
            for (name, gradient) in model.gradients(model.forward(batch)) {
                gradients.insert(name, read_f32(gradient).await?);
            }
        }
        let forward = model.forward(batch);
        losses.push(
            read_f32(model.update(forward))
                .await?
                .first()
                .map_or(f64::NAN, |&loss| f64::from(loss)),
        );
        if losses.len() == 1 {
            let mut now = Named::new();
            for (name, value) in model.values() {
                now.insert(name.to_string(), read_f32(value).await?);
            }
            first_changes = changes(&before, now);
        }
    }
    Ok(Track {
        gradients,
        losses,
        first_changes,
    })
}

fn changes(before: &Named, now: Named) -> Named {
    let change = |(name, values): (String, Vec<f32>)| {
        let old = before.get(&name)?;
        Some((
            name,
            values
                .iter()
                .zip(old)
                .map(|(now, before)| now - before)
                .collect(),
        ))
    };
    now.into_iter().filter_map(change).collect()
}

/// Reads the parameters of a model.
async fn parameters(model: &Model) -> Result<Named> {
    struct Taken(Vec<(String, Tensor<1>)>);
    impl ParamVisitor for Taken {
        fn visit<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) {
            let elements = tensor.dims().iter().product::<usize>();
            self.0.push((name.to_string(), tensor.reshape([elements])));
        }
    }
    let mut taken = Taken(Vec::new());
    model.visit(&mut taken);
    let mut named = Named::new();
    for (name, tensor) in taken.0 {
        named.insert(name, read_f32(tensor).await?);
    }
    Ok(named)
}
