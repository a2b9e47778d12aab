//! Finds out what a file is and whether it is sound, without a GPU.

use wasm_bindgen::prelude::*;

use super::error::{JsResult, thrown};
use super::plain;
use super::source::{JsSource, sources};
use crate::bundle::{ByteSource, FileFormat, inspect};
use crate::error::{Error, Fault};

/// The report of `tabtune inspect --json` on one file, read as `format`; with `read`, its values are checked too.
/// The shards of an index are found among `siblings`.
#[wasm_bindgen(js_name = inspectFile)]
pub fn inspect_file(file: JsValue, format: Option<String>, read: bool, siblings: Option<Vec<JsValue>>) -> JsResult<JsValue> {
    let unknown = |word: &str| thrown(Error::InvalidConfig(vec![Fault::new("format", "safetensors, gguf, index, peft or json", word)]));
    let format = format.map(|word| FileFormat::from_word(&word).ok_or_else(|| unknown(&word))).transpose()?;
    let siblings = sources(siblings.unwrap_or_default())?;
    let siblings: Vec<&dyn ByteSource> = siblings.iter().map(AsRef::as_ref).collect();
    plain(&inspect(&JsSource::new(file)?, format, &siblings, read))
}
