//! Estimates the device memory of a run before a device is opened.

use serde::Serialize;
use wasm_bindgen::prelude::*;

use crate::device::software;
use crate::error::{JsResult, thrown};
use crate::model::ModelHandle;
use crate::objects::plain;
use crate::settings::train_config;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Estimate {
    need_bytes: u64,
    parts: Parts,
}

#[derive(Serialize)]
struct Parts {
    /// Trained weights of the model; 0 if an adapter is trained.
    weights: u64,
    /// Trained factors and modules of an adapter; 0 without one.
    adapter: u64,
    base: u64,
    grads: u64,
    optimizer: u64,
    activations: u64,
}

/// Estimates the bytes that training `model` with these settings takes on the device.
#[wasm_bindgen]
pub fn estimate(model: &ModelHandle, config_json: &str) -> JsResult<JsValue> {
    let train = train_config(config_json, model.files()).map_err(thrown)?;
    let plan = tabtune::train::memory_plan(model.shape(), &train, model.files(), software())
        .map_err(thrown)?;
    let beside = train.adapter.is_some();
    let (base, weights, adapter) = if beside {
        (plan.base, 0, plan.weights - plan.base)
    } else {
        (0, plan.weights, 0)
    };
    let parts = Parts {
        weights,
        adapter,
        base,
        grads: plan.gradients,
        optimizer: plan.optimizer,
        activations: plan.activations,
    };
    plain(&Estimate {
        need_bytes: plan.total(),
        parts,
    })
}
