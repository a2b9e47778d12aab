//! Cases of a model with a separate adapter: nothing is merged, and the base is stored as requested.

mod case;

use std::collections::BTreeMap;

use burn::tensor::Tensor;
use serde_json::{Map, Value, json};
use tabtune::config::{AdapterConfig, Form, TrainConfig};
use tabtune::data::{Batch, Dataset};
use tabtune::error::Fault;
use tabtune::formats::Digest;
use tabtune::gpu::read_f32;
use tabtune::interrupt::Interrupt;
use tabtune::model::{Model, ParamVisitor};
use tabtune::state::{leaf, weights_digest};
use tabtune::train::{NamedGradients, Trainer, accumulate, evaluate};
use tabtune::{Error, Result};

pub use self::case::{LoraCase, LoraTask};
use self::case::{LoraGradExpect, LoraTrainExpect};
use super::judge::{Subject, batch, mean, train_config};
use super::{CeExpect, LOSS, NORM, Verdict, cross_entropy, square_sum};

/// Bound of the relative error of the norm of a trained tensor.
const TENSOR_NORM: f64 = 1e-5;
/// Bound of the relative error of the distance that a tensor moved.
const CHANGE: f64 = 1e-3;
/// Bound of the error of a trained value, relative to the mean movement of the values of its tensor.
const FIRST: f64 = 1e-2;
/// Share of the whole norm below which a tensor's norm is compared relative to this share.
const SMALL: f64 = 1e-3;

/// Result of a case: its compared figures, and a digest for its output line.
pub struct Judged {
    /// Compared figures.
    pub verdict: Verdict,
    /// Digest of the results as f32.
    pub digest: Digest,
}

/// Tensors by name: shape and values.
type Values = BTreeMap<String, (Vec<u64>, Vec<f32>)>;

/// Runs a case on a model with a separate adapter, whose settings are `adapter`.
///
/// # Errors
/// Errors of the crate's tokenizer, model and trainer; unequal micro-batches.
pub async fn judge_lora(
    task: &LoraTask,
    subject: &Subject<'_>,
    adapter: &AdapterConfig,
) -> Result<Judged> {
    let (verdict, values) = match task {
        LoraTask::Ce {
            start,
            count,
            expect,
            ..
        } => ce(*start, *count, expect, subject).await?,
        LoraTask::Grad {
            starts,
            length,
            expect,
            ..
        } => grad(starts, *length, expect, subject).await?,
        LoraTask::Train {
            length,
            steps,
            micro_batches,
            optimizer,
            groups,
            expect,
            ..
        } => {
            let config = train_config(optimizer, *length, steps)?;
            let parts = micro_batches.unwrap_or(1);
            let config = TrainConfig {
                groups: groups.clone(),
                adapter: Some(adapter.clone()),
                gradient_checkpointing: true,
                batch_size: config.batch_size / parts,
                gradient_accumulation_steps: parts,
                ..config
            };
            train(steps, parts, config, expect, subject).await?
        }
    };
    let digest = |(name, (shape, values)): (&String, &(Vec<u64>, Vec<f32>))| {
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        (name.clone(), leaf(name, "F32", shape, Digest::of(&bytes)))
    };
    let digest = weights_digest(&values.iter().map(digest).collect());
    Ok(Judged { verdict, digest })
}

async fn ce(
    start: usize,
    count: usize,
    expect: &CeExpect,
    subject: &Subject<'_>,
) -> Result<(Verdict, Values)> {
    let model = subject.model;
    let (mut verdict, batch, x) = mean((start, count), expect, LOSS, subject).await?;
    let logits = read_f32(model.head(x)).await?;
    let rows = logits
        .chunks_exact(model.config().vocab_size)
        .zip(&batch.targets);
    let losses: Vec<f64> = rows
        .map(|(row, &target)| cross_entropy(row, target as usize))
        .collect();
    for (name, found, want) in [
        ("first", losses.first(), expect.first),
        ("last", losses.last(), expect.last),
    ] {
        verdict.relative(name, found.copied().unwrap_or(f64::NAN), want, LOSS);
    }
    let losses: Vec<f32> = losses.into_iter().map(|loss| loss as f32).collect();
    Ok((
        verdict,
        BTreeMap::from([("losses".to_string(), (vec![count as u64], losses))]),
    ))
}

async fn grad(
    starts: &[usize],
    length: usize,
    expect: &LoraGradExpect,
    subject: &Subject<'_>,
) -> Result<(Verdict, Values)> {
    let batch = batch(&subject.tokenizer.encode(subject.text)?, starts, length)?;
    let scale = 1.0 / batch.counted() as f64;
    let mut sums = NamedGradients::new();
    let loss = accumulate(
        subject.model,
        &batch,
        None,
        scale,
        true,
        &|_| false,
        &mut sums,
    )?;
    let mut verdict = Verdict::default();
    verdict.relative(
        "loss",
        f64::from(read_f32(loss).await?[0]) * scale,
        expect.loss,
        LOSS,
    );
    let shapes: BTreeMap<String, Vec<usize>> = subject
        .model
        .parameters()
        .into_iter()
        .map(|info| (info.name, info.shape))
        .collect();
    let mut values = Values::new();
    for (name, tensor) in sums {
        let shape = shapes
            .get(&name)
            .into_iter()
            .flatten()
            .map(|&dim| dim as u64)
            .collect();
        values.insert(name, (shape, read_f32(tensor).await?));
    }
    verdict.equal(
        "names",
        &values.keys().collect::<Vec<_>>(),
        &expect.norms.keys().collect::<Vec<_>>(),
    );
    let mut total = 0.0;
    for (name, want) in &expect.norms {
        let Some((_, got)) = values.get(name) else {
            continue;
        };
        total += square_sum(got);
        let bound = NORM * want.max(expect.norm * SMALL);
        verdict.near(name, square_sum(got).sqrt(), *want, bound);
        for (place, sample) in expect.samples.get(name).into_iter().flatten().enumerate() {
            verdict.near(
                format!("{name}[{place}]"),
                got.get(place).map_or(f64::NAN, |value| f64::from(*value)),
                *sample,
                bound,
            );
        }
    }
    verdict.relative("norm", total.sqrt(), expect.norm, NORM);
    Ok((verdict, values))
}

async fn train(
    steps: &[Vec<usize>],
    parts: usize,
    config: TrainConfig,
    expect: &LoraTrainExpect,
    subject: &Subject<'_>,
) -> Result<(Verdict, Values)> {
    let length = config.seq_len;
    let ids = subject.tokenizer.encode(subject.text)?;
    let dataset = Dataset::from_bytes(subject.text.as_bytes(), Form::Text, subject.tokenizer, 0.0)?;
    let before = trained(subject.model).await?;
    let mut trainer = Trainer::new(subject.model.clone(), dataset, config)?;
    let mut verdict = Verdict::default();
    verdict.equal(
        "steps",
        &[steps.len(); 2],
        &[expect.losses.len(), expect.grad_norms.len()],
    );
    for (place, starts) in steps.iter().enumerate() {
        if starts.is_empty() || starts.len() % parts != 0 {
            return Err(Error::InvalidConfig(vec![Fault::new(
                "micro_batches",
                "equal parts of the starts of a step",
                parts,
            )]));
        }
        let batches: Vec<Batch> = starts
            .chunks(starts.len() / parts)
            .map(|part| batch(&ids, part, length))
            .collect::<Result<_>>()?;
        let report = trainer.step_on(&batches).await?;
        let want = |list: &[f64]| list.get(place).copied().unwrap_or(f64::NAN);
        verdict.relative(
            format!("losses[{place}]"),
            report.loss,
            want(&expect.losses),
            LOSS,
        );
        verdict.relative(
            format!("grad_norms[{place}]"),
            report.grad_norm,
            want(&expect.grad_norms),
            NORM,
        );
    }
    if let Some(starts) = steps.last() {
        let report = evaluate(
            trainer.model(),
            std::iter::once(Ok(batch(&ids, starts, length)?)),
            &Interrupt::none(),
        )
        .await?;
        verdict.relative("final_loss", report.loss, expect.final_loss, LOSS);
    }
    let after = trained(trainer.model()).await?;
    compare(&mut verdict, &before, &after, expect);
    Ok((verdict, after))
}

/// Compares the trained tensors with the expected ones.
fn compare(verdict: &mut Verdict, before: &Values, after: &Values, expect: &LoraTrainExpect) {
    verdict.equal(
        "names",
        &after.keys().collect::<Vec<_>>(),
        &expect.tensors.keys().collect::<Vec<_>>(),
    );
    let (mut square, mut moved) = (0.0, 0.0);
    for (name, want) in &expect.tensors {
        let (Some((_, old)), Some((shape, new))) = (before.get(name), after.get(name)) else {
            continue;
        };
        let change: f64 = old
            .iter()
            .zip(new)
            .map(|(old, new)| (f64::from(*new) - f64::from(*old)).powi(2))
            .sum();
        square += square_sum(new);
        moved += change;
        verdict.equal(format!("{name} shape"), shape, &want.shape);
        verdict.relative(
            format!("{name} norm"),
            square_sum(new).sqrt(),
            want.norm,
            TENSOR_NORM,
        );
        if want.change == 0.0 {
            let bits = |values: &[f32]| {
                values
                    .iter()
                    .map(|value| value.to_bits())
                    .collect::<Vec<u32>>()
            };
            verdict.equal(format!("{name} unchanged"), &bits(new), &bits(old));
            continue;
        }
        verdict.relative(format!("{name} change"), change.sqrt(), want.change, CHANGE);
        let bound = FIRST * want.change / (new.len() as f64).sqrt();
        for (place, value) in want.first.iter().enumerate() {
            verdict.near(
                format!("{name}[{place}]"),
                new.get(place).map_or(f64::NAN, |new| f64::from(*new)),
                *value,
                bound,
            );
        }
    }
    verdict.relative(
        "adapter_norm",
        square.sqrt(),
        expect.adapter_norm,
        TENSOR_NORM,
    );
    verdict.relative(
        "adapter_change",
        moved.sqrt(),
        expect.adapter_change,
        CHANGE,
    );
}

/// Reads the trained tensors of a model.
async fn trained(model: &Model) -> Result<Values> {
    struct Collect(Vec<(String, Vec<u64>, Tensor<1>)>);
    impl ParamVisitor for Collect {
        fn visit<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) {
            let dims = tensor.dims();
            let shape = dims.iter().map(|&dim| dim as u64).collect();
            self.0.push((
                name.to_string(),
                shape,
                tensor.reshape([dims.iter().product::<usize>()]),
            ));
        }
    }
    let mut collect = Collect(Vec::new());
    model.visit(&mut collect);
    let mut values = Values::new();
    for (name, shape, tensor) in collect.0 {
        values.insert(name, (shape, read_f32(tensor).await?));
    }
    Ok(values)
}

/// Adds the base's storage and size and the digest of the results to the line of a case.
pub fn describe(model: &Model, digest: Digest, line: &mut Map<String, Value>) {
    let held = model.frozen_weights();
    line.insert("storage".into(), json!(held.matrices));
    line.insert("base_bytes".into(), json!(held.bytes));
    line.insert("digest".into(), json!(digest.to_string()));
}
