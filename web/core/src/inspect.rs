//! Finds out what a file is and whether it is sound, without a GPU.

use tabtune::bundle::{FileFormat, inspect};
use tabtune::error::{Error, Fault};
use tabtune::portable::inspection;
use tabtune::state::PortableModelImportRequest;
use wasm_bindgen::prelude::*;

use crate::error::{JsResult, thrown};
use crate::objects::plain;
use crate::source::{JsSource, shared, sources};

/// Returns the report of `tabtune inspect --json` on one file, read as `format`; with `read`, its values are checked too. The shards of an
/// index are looked for among `siblings`.
#[wasm_bindgen(js_name = inspectFile)]
pub fn inspect_file(
    file: JsValue,
    format: Option<String>,
    read: bool,
    siblings: Option<Vec<JsValue>>,
) -> JsResult<JsValue> {
    let unknown = |word: &str| {
        thrown(Error::InvalidConfig(vec![Fault::new(
            "format",
            "safetensors, gguf, index, peft or json",
            word,
        )]))
    };
    let format = format
        .map(|word| FileFormat::from_word(&word).ok_or_else(|| unknown(&word)))
        .transpose()?;
    let siblings = sources(siblings.unwrap_or_default())?;
    plain(&inspect(
        &JsSource::new(file)?,
        format,
        || Ok(siblings),
        read,
    ))
}

/// Describes the files together and what can be done with them, from headers alone → `Inspection`. A file that is refused is part of the answer
/// and not thrown.
#[wasm_bindgen(js_name = inspectModel)]
pub fn inspect_model(
    files: Vec<JsValue>,
    request_json: Option<String>,
    adapter: Vec<JsValue>,
) -> JsResult<JsValue> {
    let adapter = shared(adapter)?;
    plain(&inspection(
        &shared(files)?,
        request(request_json)?,
        (!adapter.is_empty()).then_some(adapter),
    ))
}

/// Parses a request from its JSON text.
pub(crate) fn request(json: Option<String>) -> JsResult<Option<PortableModelImportRequest>> {
    json.map(|text| PortableModelImportRequest::read(&text))
        .transpose()
        .map_err(thrown)
}
