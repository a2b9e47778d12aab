//! Replays recorded trajectories. Not part of a release.

use wasm_bindgen::prelude::*;

use crate::device::device;
use crate::error::{JsResult, thrown};
use crate::values::{Report, plain};

/// Replays one file of recorded trajectories through the optimizers and schedules of this build → `ReplayReport`.
#[wasm_bindgen(skip_typescript)]
pub async fn replay(file: String, bytes: Vec<u8>) -> JsResult<Report> {
    let report = tabtune::replay::replay(&file, &bytes, &device()?).await;
    plain(&report.map_err(thrown)?)
}
