//! Plans of imports, and single tensors of files, without a GPU.

use js_sys::{Promise, Uint8Array};
use serde::Serialize;
use tabtune::error::{Error, Refusal};
use tabtune::portable::{self, PlanReport};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::error::{JsResult, thrown};
use crate::inspect::import_request;
use crate::source::{JsSource, sources};
use crate::values::{Values, plain};

/// A plan, or the reasons why there is none.
#[derive(Serialize)]
struct Planned {
    plan: Option<PlanReport>,
    refusals: Vec<Refusal>,
}

/// Plans the import that `request` asks for, from headers alone → `{ plan, refusals }`. A refused request or file is part of the answer.
#[wasm_bindgen(js_name = planFiles, unchecked_return_type = "Promise<unknown>")]
pub fn plan_files(files: Vec<JsSource>, request: Values) -> JsResult<Promise> {
    let (files, request) = (sources(files)?, import_request(Some(request))?);
    Ok(future_to_promise(async move {
        let (plan, refusals) = match portable::plan_files(&files, request.unwrap_or_default()).await
        {
            Ok(plan) => (Some(PlanReport::of(&plan)), Vec::new()),
            Err(Error::Refused(refusals)) => (None, refusals),
            Err(error) => return Err(thrown(error)),
        };
        plain(&Planned { plan, refusals }).map(Into::into)
    }))
}

/// A tensor with its bytes as they are stored.
#[derive(Serialize)]
struct StoredTensor {
    name: String,
    dtype: String,
    shape: Vec<u64>,
    #[serde(with = "serde_wasm_bindgen::preserve")]
    bytes: Uint8Array,
}

/// Reads one tensor of the files, by the name that it has in the plan of `request` → `{ name, dtype, shape, bytes }`. Beyond the headers only
/// its bytes are read.
#[wasm_bindgen(js_name = readTensor, unchecked_return_type = "Promise<unknown>")]
pub fn read_tensor(files: Vec<JsSource>, name: String, request: Values) -> JsResult<Promise> {
    let (files, request) = (sources(files)?, import_request(Some(request))?);
    Ok(future_to_promise(async move {
        let plan = portable::plan_files(&files, request.unwrap_or_default()).await;
        let read = plan.map_err(thrown)?.materialize_tensor(&name).await;
        let (tensor, bytes) = read.map_err(thrown)?;
        let tensor = StoredTensor {
            name: tensor.state_key,
            dtype: tensor.dtype,
            shape: tensor.shape,
            bytes: Uint8Array::from(bytes.as_ref()),
        };
        plain(&tensor).map(Into::into)
    }))
}
