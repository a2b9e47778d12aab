//! Replays recorded trajectories. Not part of a release.

use wasm_bindgen::prelude::*;

use crate::device::device;
use crate::error::{JsResult, thrown};
use crate::objects::plain;

/// Replays one file of recorded trajectories through the optimizers and schedules of this build → `ReplayReport`.
#[wasm_bindgen]
pub async fn replay(file: String, bytes: Vec<u8>) -> JsResult<JsValue> {
    let report = tabtune::replay::replay(&file, &bytes, &device()?).await;
    plain(&report.map_err(thrown)?)
}
