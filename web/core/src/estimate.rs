//! Estimates the device memory of a run before a device is opened.

use tabtune_border::Estimate;
use wasm_bindgen::prelude::*;

use crate::device::software;
use crate::error::{JsResult, thrown};
use crate::model::ModelHandle;
use crate::settings::train_config;
use crate::values::{Report, Values, plain, value};

/// Estimates the bytes that training `model` with these settings takes on the device → `Estimate`.
#[wasm_bindgen]
pub fn estimate(model: &ModelHandle, config: Values) -> JsResult<Report> {
    let train = value(config).and_then(|given| {
        let config = train_config(given.clone(), model.files())?;
        Ok(model.choices(config, &given, true, false)?.0)
    });
    let train = train.map_err(thrown)?;
    let plan = tabtune::train::memory_plan(model.shape(), &train, model.files(), software())
        .map_err(thrown)?;
    plain(&Estimate::of(&plan, train.adapter.is_some()))
}
