//! Lists the exports of a model: every export is planned, as far as that needs no values.

use serde::Serialize;

use super::folder::export_folder;
use super::gguf::NAME;
use super::gguf_adapter::export_gguf_adapter;
use super::gguf_types::{GgufTypes, words};
use super::merged::opened_merged;
use super::options::{ExportDtype, ExportFormat, ExportOptions};
use super::peft::export_adapter;
use super::recipe::{Start, recipe};
use super::source::ExportSource;
use crate::bundle::FileStream;
use crate::error::Result;
use crate::state::RECEIPT;

/// A form in which a model can be exported, or cannot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExportChoice {
    /// Format of the export.
    pub format: ExportFormat,
    /// Types of the matrices of a GGUF file, or the dtype that must be requested for a folder.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub types: Option<String>,
    /// True if the export is possible.
    pub ok: bool,
    /// Total size of the files, including the receipt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Parts of the model that are lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lossy: Option<String>,
    /// `base` if the files that the model came from must be given again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<&'static str>,
    /// Reason if it is not possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl ExportChoice {
    /// Creates the choice for a planned export.
    pub fn planned(format: ExportFormat, types: Option<&str>, plan: Result<FileStream>) -> Self {
        let (bytes, reason) = match plan {
            Ok(stream) => (Some(stream.files().iter().map(|file| file.bytes).sum()), None),
            Err(error) => (None, Some(error.to_string())),
        };
        Self { format, types: types.map(String::from), ok: reason.is_none(), bytes, lossy: None, needs: None, reason }
    }
}

/// Plans the folder and every GGUF file that `source` can be exported to, with the functions that write them. Nothing is read.
pub fn export_choices(source: &ExportSource) -> Vec<ExportChoice> {
    let source = &source.planned();
    if source.adapter_settings.is_some() {
        return of_adapter(source);
    }
    let usual = ExportOptions::default();
    let folder = match opened_merged(source, &usual) {
        Ok(Some(merged)) => export_folder(&merged.source, &merged.options),
        _ => export_folder(source, &usual),
    };
    let mut choices = if folder.is_err() {
        let dtype = ExportOptions { dtype: ExportDtype::F32, ..ExportOptions::default() };
        vec![
            ExportChoice::planned(ExportFormat::Safetensors, None, folder),
            ExportChoice::planned(ExportFormat::Safetensors, Some("f32"), export_folder(source, &dtype)),
        ]
    } else {
        vec![ExportChoice::planned(ExportFormat::Safetensors, None, folder)]
    };
    let start = Start::of(source);
    // The base's metadata and tokenizer are used where no new ones can be made.
    let patched = start.is_err() && source.base.as_ref().is_some_and(|base| base.format == "gguf");
    for word in words() {
        let options = ExportOptions { format: ExportFormat::Gguf, types: Some(word.to_string()), ..ExportOptions::default() };
        let merged = opened_merged(source, &options).ok().flatten();
        let source = merged.as_ref().map_or(source, |merged| &merged.source);
        let plan = |start: &Start| {
            let mut stream = recipe(source, start, NAME, GgufTypes::from_word(word)?, false)?;
            stream.push_receipt(RECEIPT, source.draft())?;
            Ok(stream)
        };
        let made = start.as_ref().map_err(Clone::clone).and_then(plan);
        let mut choice = ExportChoice::planned(ExportFormat::Gguf, Some(word), made);
        if patched {
            choice = ExportChoice { ok: true, needs: Some("base"), reason: None, ..choice };
        }
        if merged.as_ref().is_some_and(|merged| !merged.files.is_empty()) {
            // The base's file with the sums in their places has another size.
            choice.bytes = None;
        }
        choice.lossy = choice.ok.then(|| "groups and optimizer state".to_string());
        choices.push(choice);
    }
    choices
}

/// Lists the exports of a trained adapter: by itself in the forms of PEFT and of llama.cpp, or merged with the files of its base.
fn of_adapter(source: &ExportSource) -> Vec<ExportChoice> {
    let options = |types: Option<&str>| ExportOptions { types: types.map(String::from), ..ExportOptions::default() };
    let mut choices = vec![ExportChoice::planned(ExportFormat::Peft, None, export_adapter(source, &options(None)))];
    for types in ["f32", "f16"].map(Some) {
        choices.push(ExportChoice::planned(ExportFormat::GgufAdapter, types, export_gguf_adapter(source, &options(types))));
    }
    let merged = |format, types: Option<&str>, reason: Option<String>| {
        let types = types.map(String::from);
        ExportChoice { format, types, ok: reason.is_none(), bytes: None, lossy: None, needs: Some("base"), reason }
    };
    choices.push(merged(ExportFormat::Safetensors, None, None));
    // The metadata and the tokenizer of a base that is a GGUF file are used.
    let patched = source.base.as_ref().is_some_and(|base| base.format == "gguf");
    let reason = Start::of(source).err().filter(|_| !patched).map(|error| error.to_string());
    choices.extend(words().map(|word| merged(ExportFormat::Gguf, Some(word), reason.clone())));
    choices
}
