//! Runs steps, losses and gradients on chosen windows, for comparison with reference numbers. Not part of a release.

use std::collections::BTreeMap;

use burn::tensor::Tensor;
use js_sys::{Array, Float32Array, Promise};
use tabtune::data::{Batch, IGNORE_INDEX};
use tabtune::error::{Error, Result};
use tabtune::gpu::read_f32;
use tabtune::model::{Model, ParamVisitor};
use tabtune::train::{NamedGradients, accumulate, evaluate};
use wasm_bindgen::prelude::*;

use crate::error::thrown;
use crate::interrupt::interrupt;
use crate::session::{Session, with_run};
use crate::values::plain;

/// Returns windows of `length` inputs of `ids` from each of the starts; with `only`, only the target at that place counts.
fn windows(ids: &[i32], starts: &[u32], length: usize, only: Option<usize>) -> Result<Batch> {
    let mut batch = Batch {
        inputs: Vec::new(),
        targets: Vec::new(),
        batch_size: starts.len(),
        seq_len: length,
        document_starts: None,
    };
    for start in starts.iter().map(|&start| start as usize) {
        let need = start.saturating_add(length).saturating_add(1);
        let window = ids.get(start..need).ok_or(Error::DataTooShort {
            need,
            have: ids.len(),
        })?;
        let target = |(place, &id): (usize, &i32)| {
            if only.is_none_or(|only| only == place) {
                id
            } else {
                IGNORE_INDEX
            }
        };
        batch.inputs.extend(&window[..length]);
        batch
            .targets
            .extend(window[1..].iter().enumerate().map(target));
    }
    Ok(batch)
}

/// Returns `[name, shape, values]` of a tensor.
fn named(name: &str, shape: &[usize], values: &[f32]) -> JsValue {
    let shape: Array = shape
        .iter()
        .map(|&dim| JsValue::from_f64(dim as f64))
        .collect();
    Array::of3(
        &JsValue::from_str(name),
        &shape,
        &Float32Array::from(values),
    )
    .into()
}

/// Returns the trained tensors of a model, flattened, with their shapes.
fn trained(model: &Model) -> BTreeMap<String, (Vec<usize>, Tensor<1>)> {
    struct Collect(BTreeMap<String, (Vec<usize>, Tensor<1>)>);
    impl ParamVisitor for Collect {
        fn visit<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) {
            let shape = tensor.dims().to_vec();
            let elements = shape.iter().product::<usize>();
            self.0
                .insert(name.to_string(), (shape, tensor.reshape([elements])));
        }
    }
    let mut collect = Collect(BTreeMap::new());
    model.visit(&mut collect);
    collect.0
}

#[wasm_bindgen]
impl Session {
    /// Runs one optimizer step on windows of these ids, in `parts` equal parts → `StepReport`.
    #[wasm_bindgen(js_name = stepOn, skip_typescript)]
    pub fn step_on(&self, ids: Vec<i32>, starts: Vec<u32>, length: usize, parts: usize) -> Promise {
        with_run(self.0.clone(), move |mut run| async move {
            let size = starts.len().div_ceil(parts.max(1)).max(1);
            let batches: Result<Vec<Batch>> = starts
                .chunks(size)
                .map(|part| windows(&ids, part, length, None))
                .collect();
            let report = match batches {
                Ok(batches) => run.trainer.step_on(&batches).await,
                Err(error) => Err(error),
            };
            (
                run,
                report.map_err(thrown).and_then(|report| plain(&report)),
            )
        })
    }

    /// Returns the mean loss over windows of these ids, or over their targets at one place → `EvalReport`.
    #[wasm_bindgen(js_name = evaluateOn, skip_typescript)]
    pub fn evaluate_on(
        &self,
        ids: Vec<i32>,
        starts: Vec<u32>,
        length: usize,
        only: Option<usize>,
    ) -> Promise {
        with_run(self.0.clone(), move |run| async move {
            let batch = windows(&ids, &starts, length, only);
            let report = evaluate(run.trainer.model(), std::iter::once(batch), &interrupt()).await;
            (
                run,
                report.map_err(thrown).and_then(|report| plain(&report)),
            )
        })
    }

    /// Returns the gradients of the mean loss over windows of these ids → `[[name, shape, values], …]`.
    #[wasm_bindgen(js_name = gradientsOn, skip_typescript)]
    pub fn gradients_on(&self, ids: Vec<i32>, starts: Vec<u32>, length: usize) -> Promise {
        with_run(self.0.clone(), move |run| async move {
            let gradients =
                gradients(run.trainer.model(), windows(&ids, &starts, length, None)).await;
            (run, gradients.map_err(thrown))
        })
    }

    /// Returns the trained tensors → `[[name, shape, values], …]`.
    #[wasm_bindgen(skip_typescript)]
    pub fn trained(&self) -> Promise {
        with_run(self.0.clone(), |run| async move {
            let all = values(trained(run.trainer.model())).await;
            (run, all.map_err(thrown))
        })
    }
}

async fn values(tensors: BTreeMap<String, (Vec<usize>, Tensor<1>)>) -> Result<Array> {
    let all = Array::new();
    for (name, (shape, tensor)) in tensors {
        all.push(&named(&name, &shape, &read_f32(tensor).await?));
    }
    Ok(all)
}

async fn gradients(model: &Model, batch: Result<Batch>) -> Result<Array> {
    let batch = batch?;
    let mut sums = NamedGradients::new();
    accumulate(
        model,
        &batch,
        None,
        1.0 / batch.counted() as f64,
        true,
        &|_| false,
        &mut sums,
    )?;
    let shapes = trained(model);
    values(
        sums.into_iter()
            .filter_map(|(name, gradient)| {
                Some((name.clone(), (shapes.get(&name)?.0.clone(), gradient)))
            })
            .collect(),
    )
    .await
}
