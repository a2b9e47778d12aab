//! Measures the speed of this GPU.

use js_sys::Function;
use tabtune::measure::{Effort, measure_gpu as measure};
use wasm_bindgen::prelude::*;

use crate::device::device;
use crate::error::{JsResult, thrown};
use crate::interrupt::interrupt;
use crate::values::{Report, plain};

/// Measures the kernels at reference shapes → `GpuReport`. `timestamps` says whether the device has them; `on_progress` receives the
/// number of kernels measured so far and the number of all kernels.
#[wasm_bindgen(js_name = measureGpu)]
pub async fn measure_gpu(
    timestamps: bool,
    #[wasm_bindgen(unchecked_param_type = "(done: number, total: number) => void")]
    on_progress: Function,
) -> JsResult<Report> {
    let effort = Effort {
        timestamps,
        ..Effort::quick()
    };
    let mut progress = |done: usize, total: usize| {
        // A failing listener changes nothing here.
        let _ = on_progress.call2(
            &JsValue::NULL,
            &JsValue::from_f64(done as f64),
            &JsValue::from_f64(total as f64),
        );
    };
    let report = measure(&device()?, &effort, &interrupt(), &mut progress).await;
    plain(&report.map_err(thrown)?)
}
