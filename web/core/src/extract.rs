//! Extracts adapters from two models, without a GPU.

use js_sys::{Function, Object, Promise, Reflect};
use tabtune::bundle::OpenOptions;
use tabtune::config::AdapterWarning;
use tabtune::error::Warning;
use tabtune::error::{Error, Fault};
use tabtune::model::open_model_with;
use tabtune::portable;
use tabtune::train::Notice;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::error::{JsResult, thrown};
use crate::interrupt::interrupt;
use crate::objects::plain;
use crate::source::sources;
use crate::stream::FileStream;

/// Extracts the adapter that comes closest to the difference of two models → `{ report, warnings, stream }`. `options_json` is an
/// `ExtractOptions`; `on_progress` receives the number of values read so far and the number of all values.
#[wasm_bindgen(js_name = extractAdapter)]
pub fn extract_adapter(
    tuned: Vec<JsValue>,
    base: Vec<JsValue>,
    options_json: &str,
    on_progress: Function,
) -> JsResult<Promise> {
    let wrong = |error| {
        thrown(Error::InvalidConfig(vec![Fault::new(
            "options",
            "the keys of ExtractOptions",
            error,
        )]))
    };
    let options: portable::ExtractOptions = serde_json::from_str(options_json).map_err(wrong)?;
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
        let made = Object::new();
        let set = |key: &str, value: JsValue| Reflect::set(&made, &JsValue::from_str(key), &value);
        set("report", plain(&extracted.report)?)?;
        set(
            "warnings",
            plain(&Vec::from_iter(extracted.warnings.iter().map(notice)))?,
        )?;
        set("stream", FileStream::of(extracted.stream).into())?;
        Ok(made.into())
    }))
}
