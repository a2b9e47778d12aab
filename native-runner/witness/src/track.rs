//! Records a run of a subject with tabtune or with Burn's operations.

use std::collections::BTreeMap;

use burn::tensor::{DType, Device as TensorDevice, Tensor};
use tabtune::Result;
use tabtune::bf16::widen;
use tabtune::config::{Precision, TrainConfig};
use tabtune::device::Device;
use tabtune::gpu::{read_data, read_f32};
use tabtune::interrupt::Interrupt;
use tabtune::model::{Model, ParamVisitor};
use tabtune::train::{NamedGradients, Trainer, accumulate};
use tabtune_bench::stock::Stock;

use crate::subject::Subject;

/// Values by state-dict name.
pub type Named = BTreeMap<String, Vec<f32>>;

/// Record of a run. What a rule keeps for a parameter has the parameter's name, a colon, and its own.
#[derive(Debug, Clone, Default)]
pub struct Track {
    /// Gradients of the mean loss in the first step.
    pub gradients: Named,
    /// Mean loss of each step, before its update.
    pub losses: Vec<f64>,
    /// Change of each parameter in the first step, and what the rule keeps after it, both before anything is rounded to bf16.
    pub first_changes: Named,
    /// Values that the first step stores in bf16, each before and after rounding; none in f32.
    pub rounded: BTreeMap<String, Vec<[f32; 2]>>,
}

impl Track {
    /// Records the first step: `results` has everything before rounding, `stored` what was rounded.
    fn record(&mut self, subject: &Subject, results: Named, mut stored: Named) {
        for (name, values) in results {
            if let Some(stored) = stored.remove(&name) {
                let pairs = values.iter().zip(stored).map(|(&x, stored)| [x, stored]);
                self.rounded.insert(name.clone(), pairs.collect());
            }
            let before = subject.weights.iter().find(|(other, ..)| *other == name);
            let change = match before {
                Some((.., before)) => values.iter().zip(before).map(|(now, x)| now - x).collect(),
                None => values,
            };
            self.first_changes.insert(name, change);
        }
    }
}

/// Trains with tabtune's kernels, or with their twins on the CPU. In bf16 the first step is made a second time in f32, whose results are those
/// that bf16 rounds.
///
/// # Errors
/// Errors of the model, the trainer and the device.
pub async fn by_trainer(subject: &Subject, device: &Device) -> Result<Track> {
    let mut track = Track::default();
    let Some(first) = subject.batches.first() else {
        return Ok(track);
    };
    let model = model(subject, subject.train.precision, device).await?;
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
    for (name, sum) in sums {
        track.gradients.insert(name, read_f32(sum).await?);
    }
    let mut trainer = Trainer::new(model, subject.dataset()?, subject.train.clone())?;
    for batch in &subject.batches {
        let report = trainer.step_on(std::slice::from_ref(batch)).await?;
        track.losses.push(report.loss);
        if track.losses.len() > 1 {
            continue;
        }
        let mut results = Named::new();
        let mut rounded = Named::new();
        for (name, dtype, values) in stored(&trainer).await? {
            match dtype {
                DType::BF16 => rounded.insert(name, values),
                _ => results.insert(name, values),
            };
        }
        if subject.train.precision == Precision::Bf16 {
            let exact = in_f32(subject, device).await?;
            let of_rounded = exact.into_iter().map(|(name, _, values)| (name, values));
            results.extend(of_rounded.filter(|(name, _)| rounded.contains_key(name)));
        }
        track.record(subject, results, rounded);
    }
    Ok(track)
}

/// Name, storage type and values of a tensor.
type NamedValues = (String, DType, Vec<f32>);

/// Makes the first step in f32.
async fn in_f32(subject: &Subject, device: &Device) -> Result<Vec<NamedValues>> {
    let precision = Precision::F32;
    let model = model(subject, precision, device).await?;
    let train = TrainConfig {
        precision,
        ..subject.train.clone()
    };
    let mut trainer = Trainer::new(model, subject.dataset()?, train)?;
    trainer.step_on(&subject.batches[..1]).await?;
    stored(&trainer).await
}

async fn model(subject: &Subject, precision: Precision, device: &Device) -> Result<Model> {
    let none = Interrupt::none();
    Model::from_bundle(&subject.bundle, precision, &device.inner(), &none).await
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
    let mut track = Track::default();
    for batch in &subject.batches {
        if track.losses.is_empty() {
            for (name, gradient) in model.gradients(model.forward(batch)) {
                track.gradients.insert(name, read_f32(gradient).await?);
            }
        }
        let forward = model.forward(batch);
        let loss = read_f32(model.update(forward)).await?;
        track
            .losses
            .push(loss.first().map_or(f64::NAN, |&loss| f64::from(loss)));
        if track.losses.len() > 1 {
            continue;
        }
        let (mut results, mut rounded) = (Named::new(), Named::new());
        for stored in model.stored() {
            let value = read_f32(stored.value).await?;
            match stored.unrounded {
                Some(unrounded) => {
                    results.insert(stored.name.clone(), read_f32(unrounded).await?);
                    rounded.insert(stored.name, value);
                }
                None => {
                    results.insert(stored.name, value);
                }
            }
        }
        track.record(subject, results, rounded);
    }
    Ok(track)
}

/// Reads the parameters of a run and what its rules keep.
async fn stored(trainer: &Trainer) -> Result<Vec<NamedValues>> {
    struct Taken(Vec<(String, Tensor<1>)>);
    impl ParamVisitor for Taken {
        fn visit<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) {
            let elements = tensor.dims().iter().product::<usize>();
            self.0.push((name.to_string(), tensor.reshape([elements])));
        }
    }
    let mut taken = Taken(Vec::new());
    trainer.model().visit(&mut taken);
    let mut all = Vec::new();
    for (name, tensor) in taken.0 {
        let dtype = tensor.dtype();
        let data = read_data(tensor).await?;
        all.push((name, dtype, values(dtype, data.as_bytes())));
    }
    for (name, tensor) in trainer.optim().state_tensors() {
        let dtype = match tensor.dtype {
            "BF16" => DType::BF16,
            "F32" => DType::F32,
            _ => continue,
        };
        all.push((name, dtype, values(dtype, &tensor.bytes().await?)));
    }
    Ok(all)
}

/// Widens little-endian values.
fn values(dtype: DType, bytes: &[u8]) -> Vec<f32> {
    if dtype == DType::BF16 {
        let halves = bytes.as_chunks().0.iter();
        halves
            .map(|half| widen(u16::from_le_bytes(*half)))
            .collect()
    } else {
        let words = bytes.as_chunks().0.iter();
        words.map(|word| f32::from_le_bytes(*word)).collect()
    }
}
