//! Finds out what a file is and whether it is sound, without a GPU.

use tabtune::bundle::{FileFormat, inspect};
use tabtune::error::{Error, Fault};
use tabtune::portable::inspection;
use tabtune::state::PortableModelImportRequest;
use wasm_bindgen::prelude::*;

use crate::error::{JsResult, thrown};
use crate::source::{JsSource, Source, sources};
use crate::values::{Report, Values, plain, value};

/// Returns the report of `tabtune inspect --json` on one file, read as `format`; with `read`, its values are checked too. The shards of an
/// index are looked for among `siblings`.
#[wasm_bindgen(js_name = inspectFile)]
pub fn inspect_file(
    file: JsSource,
    format: Option<String>,
    read: bool,
    siblings: Option<Vec<JsSource>>,
) -> JsResult<Report> {
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
    plain(&inspect(&Source::new(file)?, format, || Ok(siblings), read))
}

/// Describes the files together and what can be done with them, from headers alone → `Inspection`. A file that is refused is part of the answer
/// and not thrown.
#[wasm_bindgen(js_name = inspectModel)]
pub fn inspect_model(
    files: Vec<JsSource>,
    request: Option<Values>,
    adapter: Vec<JsSource>,
) -> JsResult<Report> {
    let adapter = sources(adapter)?;
    plain(&inspection(
        &sources(files)?,
        import_request(request)?,
        (!adapter.is_empty()).then_some(adapter),
    ))
}

/// Reads a request.
pub(crate) fn import_request(
    given: Option<Values>,
) -> JsResult<Option<PortableModelImportRequest>> {
    let read = |given| PortableModelImportRequest::read(&value(given)?.to_string());
    given.map(read).transpose().map_err(thrown)
}
