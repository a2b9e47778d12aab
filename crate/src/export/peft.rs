//! An adapter as a folder of PEFT.

use std::collections::BTreeMap;

use super::card::card;
use super::options::{ExportFormat, ExportOptions};
use super::source::ExportSource;
use crate::bundle::{ADAPTER_CONFIG, ADAPTER_WEIGHTS, FileStream, RECEIPT, adapter_tensors};
use crate::error::{Refusal, Result, word};
use crate::model::adapter_document;

/// The folder that PEFT and tabtune load beside the base: `adapter_config.json` and `adapter_model.safetensors` with the trained tensors as
/// they are stored, a card, and last the receipt.
///
/// # Errors
/// `export.adapter` for a whole model, those of [`AdapterConfig::resolve`](crate::config::AdapterConfig::resolve); while the stream is read, `export.overflow` for finite values beyond their dtype.
pub fn export_adapter(source: &ExportSource, options: &ExportOptions) -> Result<FileStream> {
    check_kind(source, ExportFormat::Peft)?;
    let adapter = source.adapter_settings.clone().unwrap_or_default();
    let mut stream = FileStream::summed();
    let metadata = BTreeMap::from([("format".to_string(), "pt".to_string())]);
    stream.push_safetensors_as(ADAPTER_WEIGHTS, adapter_tensors(source.weights.tensors.clone()), options.dtype.tensor_type(), &metadata)?;
    let base = source.base.as_ref().map_or("", |base| &base.name);
    let base = options.card.as_ref().and_then(|card| card.base_model.as_deref()).unwrap_or(base);
    stream.push_bytes(ADAPTER_CONFIG, adapter_document(&adapter, &source.weights.config, base)?.into_bytes());
    stream.push_bytes("README.md", card(source, options)?.into_bytes());
    stream.push_receipt(RECEIPT, source.draft())?;
    Ok(stream)
}

/// What an adapter or a whole model is asked for and cannot be.
pub fn check_kind(source: &ExportSource, format: ExportFormat) -> Result<()> {
    let refusal = Refusal::new(word!("export.adapter"));
    match (&source.adapter_settings, format) {
        (Some(_), ExportFormat::Peft) | (None, ExportFormat::Safetensors | ExportFormat::Gguf | ExportFormat::Json) => Ok(()),
        (Some(_), _) => {
            let hint = "export peft, and merge that folder into the base";
            Err(refusal.expected("format peft: only an adapter was trained").found(format.word()).hint(hint).into())
        }
        (None, ExportFormat::Peft) => Err(refusal.expected("the format of a whole model: no adapter was trained").found("peft").into()),
    }
}
