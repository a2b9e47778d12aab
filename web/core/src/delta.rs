//! Deltas between models in files, without a GPU.

use std::future::Future;
use std::rc::Rc;

use js_sys::Promise;
use serde::Serialize;
use tabtune::error::Result;
use tabtune::portable::{self, DeltaFiles, DeltaReport, DeltaUse};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::error::{JsResult, thrown};
use crate::source::{JsSource, Source, sources};
use crate::stream::FileStream;
use crate::values::plain;

#[derive(Serialize)]
struct Made {
    report: DeltaReport,
    #[serde(with = "serde_wasm_bindgen::preserve")]
    stream: JsValue,
}

fn made(work: impl Future<Output = Result<DeltaFiles>> + 'static) -> Promise {
    future_to_promise(async move {
        let DeltaFiles { report, stream } = work.await.map_err(thrown)?;
        let stream = FileStream::of(stream).into();
        plain(&Made { report, stream }).map(Into::into)
    })
}

/// Derives the delta `name` from a base to a target, as the file `delta.safetensors` and its receipt.
#[wasm_bindgen(
    js_name = deriveDelta,
    unchecked_return_type = "Promise<{ report: unknown; stream: FileStream }>"
)]
pub fn derive_delta(base: Vec<JsSource>, target: Vec<JsSource>, name: String) -> JsResult<Promise> {
    let (base, target) = (sources(base)?, sources(target)?);
    Ok(made(async move {
        portable::derive_delta(&base, &target, &name, None).await
    }))
}

/// Adds a delta to its base, or with `remove` subtracts it from its target: the weight files of the model, with other bytes where the delta
/// changes them, and their receipt.
#[wasm_bindgen(
    js_name = useDelta,
    unchecked_return_type = "Promise<{ report: unknown; stream: FileStream }>"
)]
pub fn use_delta(model: Vec<JsSource>, delta: JsSource, remove: bool) -> JsResult<Promise> {
    let (model, delta) = (sources(model)?, Rc::new(Source::new(delta)?));
    let way = match remove {
        true => DeltaUse::Remove,
        false => DeltaUse::Apply,
    };
    Ok(made(async move {
        portable::use_delta(&model, delta, way, None).await
    }))
}
