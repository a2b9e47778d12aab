//! Exports models, and verifies what was exported.

use js_sys::Promise;
use tabtune::bundle::verify_files as verify;
use tabtune::export::{ExportOptions, ExportSource};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::error::{JsResult, thrown};
use crate::source::{JsSource, sources};
use crate::stream::FileStream;
use crate::values::{Report, Values, plain, read, value};

/// Writes the files of `source` with these `ExportOptions`.
pub(crate) fn written(
    source: ExportSource,
    options: Values,
    base: Vec<JsSource>,
) -> JsResult<Promise> {
    let options: ExportOptions =
        read("options", "the keys of ExportOptions", options).map_err(thrown)?;
    let base = sources(base)?;
    Ok(future_to_promise(async move {
        let stream = tabtune::export::export(&source, base, &options).await;
        Ok(FileStream::of(stream.map_err(thrown)?).into())
    }))
}

/// Recomputes the statements of a receipt about these files; by default, of the `tabtune.receipt.json` among them.
#[wasm_bindgen(js_name = verifyFiles)]
pub fn verify_files(files: Vec<JsSource>, receipt: Option<Values>) -> JsResult<Report> {
    let receipt = receipt.map(value).transpose().map_err(thrown)?;
    let text = receipt.map(|receipt| receipt.to_string());
    plain(&verify(&sources(files)?, text.as_deref()).map_err(thrown)?)
}
