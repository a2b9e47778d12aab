//! Extracts adapters from two models, without a GPU.

use js_sys::{Function, Promise};
use serde::Serialize;
use tabtune::bundle::OpenOptions;
use tabtune::config::AdapterWarning;
use tabtune::error::Warning;
use tabtune::model::open_model_with;
use tabtune::portable::{self, ExtractReport};
use tabtune::train::Notice;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::error::{JsResult, thrown};
use crate::interrupt::interrupt;
use crate::source::{JsSource, sources};
use crate::stream::FileStream;
use crate::values::{Values, plain, read};

#[derive(Serialize)]
struct Extraction {
    report: ExtractReport,
    warnings: Vec<Notice>,
    #[serde(with = "serde_wasm_bindgen::preserve")]
    stream: JsValue,
}

/// Extracts the adapter that comes closest to the difference of two models, with `ExtractOptions`. `on_progress`
/// receives the number of values read so far and the number of all values.
#[wasm_bindgen(
    js_name = extractAdapter,
    unchecked_return_type = "Promise<{ report: unknown; warnings: unknown; stream: FileStream }>"
)]
pub fn extract_adapter(
    tuned: Vec<JsSource>,
    base: Vec<JsSource>,
    options: Values,
    #[wasm_bindgen(unchecked_param_type = "(done: number, total: number) => void")]
    on_progress: Function,
) -> JsResult<Promise> {
    let options: portable::ExtractOptions =
        read("options", "the keys of ExtractOptions", options).map_err(thrown)?;
    let (tuned, base) = (sources(tuned)?, sources(base)?);
    Ok(future_to_promise(async move {
        let open = |files| open_model_with(files, OpenOptions::default()).map_err(thrown);
        let (tuned, base) = (open(tuned)?, open(base)?);
        let mut progress = |done: u64, total: u64| {
            // A failing listener changes nothing here.
            let _ = on_progress.call2(
                &JsValue::NULL,
                &JsValue::from_f64(done as f64),
                &JsValue::from_f64(total as f64),
            );
        };
        let extracted =
            portable::extract_adapter(&tuned, &base, &options, &interrupt(), &mut progress)
                .await
                .map_err(thrown)?;
        let notice = |AdapterWarning { code, subject }: &AdapterWarning| {
            let message = Warning::new(*code, subject).message();
            Notice {
                code: code.text(),
                subject: Some(subject.clone()),
                message,
            }
        };
        let made = Extraction {
            report: extracted.report,
            warnings: extracted.warnings.iter().map(notice).collect(),
            stream: FileStream::of(extracted.stream).into(),
        };
        plain(&made).map(Into::into)
    }))
}
