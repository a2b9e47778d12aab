//! Runs one case through the real model, tokenizer, loss, gradients and trainer. The caller reads the files.

use std::collections::BTreeMap;

use burn::tensor::Tensor;
use serde_json::Value;
use tabtune::config::Form;
use tabtune::config::{OptimizerConfig, TrainConfig};
use tabtune::data::{Batch, Dataset};
use tabtune::error::Fault;
use tabtune::generate::{GenerateConfig, Generator};
use tabtune::gpu::read_f32;
use tabtune::interrupt::Interrupt;
use tabtune::model::{Model, ParamVisitor, Span};
use tabtune::tokenizer::Tokenizer;
use tabtune::train::{NamedGradients, Trainer, accumulate, evaluate, head_loss_sum};
use tabtune::{Error, Result};

use super::{
    CeExpect, GradExpect, GreedyExpect, LOGIT, LOSS, MERGED_LOSS, NORM, NextExpect, Task,
    TrainExpect, Verdict, cross_entropy, square_sum,
};

/// Model and inputs that a case runs on.
pub struct Subject<'a> {
    /// Model with f32 weights.
    pub model: &'a Model,
    /// True if an adapter was merged into the model.
    pub merged: bool,
    /// Tokenizer of the case.
    pub tokenizer: &'a Tokenizer,
    /// Text of the case; empty if it has none.
    pub text: &'a str,
    /// Expected whole gradients of the case, if it has them.
    pub gradients: Option<BTreeMap<String, Vec<f32>>>,
}

/// Returns the reason why a case cannot be run, if there is one.
pub fn unsupported(task: &Task) -> Option<String> {
    let Task::Train { optimizer, .. } = task else {
        return None;
    };
    optimizer_config(optimizer).err().map(|_| {
        format!(
            "optimizer {} with these keys is not built yet",
            optimizer["kind"]
        )
    })
}

/// Runs a case and compares its results with the expected ones.
///
/// # Errors
/// Errors of the crate's tokenizer, model and trainer.
pub async fn judge(task: &Task, subject: &Subject<'_>) -> Result<Verdict> {
    match task {
        Task::Next { prompt, expect } => next(prompt, expect, subject).await,
        Task::Greedy {
            prompt,
            count,
            expect,
        } => greedy(prompt, *count, expect, subject).await,
        Task::Ce {
            start,
            count,
            expect,
            ..
        } => ce(*start, *count, expect, subject).await,
        Task::Grad {
            starts,
            length,
            expect,
            ..
        } => grad(starts, *length, expect, subject).await,
        Task::Train {
            length,
            steps,
            optimizer,
            expect,
            ..
        } => train(*length, steps, optimizer, expect, subject).await,
    }
}

/// Returns the output of the last block, `[B·T, C]` with B = 1.
fn hidden(model: &Model, ids: &[i32]) -> Result<Tensor<2>> {
    let span = Span::whole(1, ids.len());
    model.check_span(span)?;
    let mut x = model.embed(model.token_tensor(ids)?, span);
    for layer in 0..model.config().num_hidden_layers {
        x = model.block(layer, x, span, None);
    }
    Ok(x)
}

async fn row(model: &Model, x: &Tensor<2>, index: usize) -> Result<Vec<f32>> {
    read_f32(model.head(x.clone().narrow(0, index, 1))).await
}

fn signed(ids: &[u32]) -> Vec<i32> {
    ids.iter().map(|&id| id as i32).collect()
}

async fn next(prompt: &str, expect: &NextExpect, subject: &Subject<'_>) -> Result<Verdict> {
    let mut verdict = Verdict::default();
    let ids = subject.tokenizer.encode(prompt)?;
    verdict.equal("ids", &ids, &expect.ids);
    let x = hidden(subject.model, &signed(&ids))?;
    verdict.top(&row(subject.model, &x, ids.len() - 1).await?, &expect.top5);
    Ok(verdict)
}

async fn greedy(
    prompt: &str,
    count: usize,
    expect: &GreedyExpect,
    subject: &Subject<'_>,
) -> Result<Verdict> {
    let prompt = subject.tokenizer.encode(prompt)?;
    let config = GenerateConfig {
        max_tokens: count,
        temperature: 0.0,
        ..GenerateConfig::default()
    };
    let mut generator = Generator::from_ids(subject.model, Vec::new(), &prompt, config)?;
    let mut ids = Vec::new();
    while let Some(token) = generator.next(subject.model, subject.tokenizer).await? {
        ids.push(token.id);
    }
    let mut verdict = Verdict::default();
    verdict.equal("ids", &ids, &expect.ids);
    verdict.equal(
        "text",
        &[subject.tokenizer.decode(&ids)?],
        std::slice::from_ref(&expect.text),
    );
    Ok(verdict)
}

/// Makes a batch of `length` inputs from each of `starts`, with the ids that follow them as targets.
pub(super) fn batch(ids: &[u32], starts: &[usize], length: usize) -> Result<Batch> {
    let mut batch = Batch {
        inputs: Vec::new(),
        targets: Vec::new(),
        batch_size: starts.len(),
        seq_len: length,
        document_starts: None,
    };
    for &start in starts {
        let end = start.saturating_add(length).saturating_add(1);
        let window = ids
            .get(start..end)
            .filter(|w| w.len() > 1)
            .ok_or(Error::DataTooShort {
                need: end,
                have: ids.len(),
            })?;
        batch.inputs.extend(signed(&window[..length]));
        batch.targets.extend(signed(&window[1..]));
    }
    Ok(batch)
}

/// Compares the first ids and the mean loss of one window, as cases of cross-entropy begin. Returns the verdict, the window, and its hidden
/// states before the head, `[B·T, C]`.
pub(super) async fn mean(
    (start, count): (usize, usize),
    expect: &CeExpect,
    bound: f64,
    subject: &Subject<'_>,
) -> Result<(Verdict, Batch, Tensor<2>)> {
    let model = subject.model;
    let batch = batch(&subject.tokenizer.encode(subject.text)?, &[start], count)?;
    let mut verdict = Verdict::default();
    let first_ids: Vec<u32> = batch
        .inputs
        .iter()
        .take(expect.first_ids.len())
        .map(|&id| id as u32)
        .collect();
    verdict.equal("first_ids", &first_ids, &expect.first_ids);
    let x = hidden(model, &batch.inputs)?;
    let sum = read_f32(head_loss_sum(
        model,
        x.clone(),
        model.target_tensor(&batch.targets)?,
    ))
    .await?;
    verdict.relative("mean", f64::from(sum[0]) / count as f64, expect.mean, bound);
    Ok((verdict, batch, x))
}

async fn ce(
    start: usize,
    count: usize,
    expect: &CeExpect,
    subject: &Subject<'_>,
) -> Result<Verdict> {
    let bound = if subject.merged { MERGED_LOSS } else { LOSS };
    let (mut verdict, batch, x) = mean((start, count), expect, bound, subject).await?;
    for (name, place, want) in [("first", 0, expect.first), ("last", count - 1, expect.last)] {
        let logits = row(subject.model, &x, place).await?;
        let largest = logits.iter().fold(0f32, |a, x| a.max(x.abs()));
        // A single loss is a difference of logits, each of which has an error of at most LOGIT.
        let bound = (2.0 * LOGIT * f64::from(largest)).min(want.abs() * 1e-2);
        verdict.near(
            name,
            cross_entropy(&logits, batch.targets[place] as usize),
            want,
            bound,
        );
    }
    Ok(verdict)
}

async fn grad(
    starts: &[usize],
    length: usize,
    expect: &GradExpect,
    subject: &Subject<'_>,
) -> Result<Verdict> {
    let batch = batch(&subject.tokenizer.encode(subject.text)?, starts, length)?;
    let scale = 1.0 / batch.counted() as f64;
    let mut sums = NamedGradients::new();
    let loss = accumulate(
        subject.model,
        &batch,
        None,
        scale,
        false,
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
    let mut gradients = BTreeMap::new();
    for (name, tensor) in sums {
        gradients.insert(name, read_f32(tensor).await?);
    }
    verdict.gradients(
        expect,
        |name| gradients.get(name).map(Vec::as_slice),
        gradients.len(),
    );
    if let Some(want) = &subject.gradients {
        verdict.whole(want, &gradients);
    }
    Ok(verdict)
}

/// Translates the case's optimizer to the settings of TrainConfig. The learning rate is a setting of the run.
fn optimizer_config(case: &Value) -> std::result::Result<OptimizerConfig, serde_json::Error> {
    let mut keys = case.as_object().cloned().unwrap_or_default();
    keys.remove("learning_rate");
    keys.remove("max_grad_norm");
    if let Some(kind) = keys.remove("kind") {
        keys.insert("type".into(), kind);
    }
    serde_json::from_value(Value::Object(keys))
}

pub(super) fn train_config(
    case: &Value,
    length: usize,
    steps: &[Vec<usize>],
) -> Result<TrainConfig> {
    let optimizer = optimizer_config(case).map_err(|e| {
        Error::InvalidConfig(vec![Fault::new("optimizer", "keys of TrainConfig", e)])
    })?;
    let number = |key: &str| case[key].as_f64();
    let config = TrainConfig {
        steps: steps.len() as u64,
        batch_size: steps.first().map_or(1, Vec::len),
        seq_len: length,
        learning_rate: number("learning_rate").unwrap_or(f64::NAN),
        max_grad_norm: number("max_grad_norm").unwrap_or(0.0),
        optimizer,
        ..TrainConfig::default()
    };
    config.validate()?;
    Ok(config)
}

async fn train(
    length: usize,
    steps: &[Vec<usize>],
    optimizer: &Value,
    expect: &TrainExpect,
    subject: &Subject<'_>,
) -> Result<Verdict> {
    let config = train_config(optimizer, length, steps)?;
    let ids = subject.tokenizer.encode(subject.text)?;
    let dataset = Dataset::from_bytes(subject.text.as_bytes(), Form::Text, subject.tokenizer, 0.0)?;
    let mut trainer = Trainer::new(subject.model.clone(), dataset, config)?;
    let mut verdict = Verdict::default();
    verdict.equal(
        "steps",
        &[steps.len(); 2],
        &[expect.losses.len(), expect.grad_norms.len()],
    );
    for (place, starts) in steps.iter().enumerate() {
        let report = trainer.step_on(&[batch(&ids, starts, length)?]).await?;
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
    verdict.relative(
        "param_norm",
        parameter_norm(trainer.model()).await?,
        expect.param_norm,
        LOSS,
    );
    Ok(verdict)
}

async fn parameter_norm(model: &Model) -> Result<f64> {
    struct Collect(Vec<Tensor<1>>);
    impl ParamVisitor for Collect {
        fn visit<const D: usize>(&mut self, _name: &str, tensor: Tensor<D>) {
            let elements = tensor.dims().iter().product::<usize>();
            self.0.push(tensor.reshape([elements]));
        }
    }
    let mut collect = Collect(Vec::new());
    model.visit(&mut collect);
    let mut total = 0.0;
    for tensor in collect.0 {
        total += square_sum(&read_f32(tensor).await?);
    }
    Ok(total.sqrt())
}
