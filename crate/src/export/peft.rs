//! Writes an adapter as a folder of PEFT.

use std::collections::BTreeMap;

use super::card::card;
use super::options::{ExportFormat, ExportOptions};
use super::source::ExportSource;
use crate::bundle::{ADAPTER_CONFIG, ADAPTER_WEIGHTS, BASE_DIGEST, FileStream, adapter_tensors};
use crate::error::{Refusal, Result, word};
use crate::formats::{Digest, TensorType, Warning};
use crate::model::adapter_document;
use crate::state::{RECEIPT, ReceiptWarning};

/// Writes the folder that PEFT and tabtune load in addition to the base: `adapter_config.json` and `adapter_model.safetensors` with the trained
/// tensors as they are stored, a card, and last the receipt.
///
/// # Errors
/// `export.adapter` for a whole model, those of [`AdapterConfig::resolve`](crate::config::AdapterConfig::resolve); while the stream is read,
/// `export.overflow` for finite values beyond their dtype.
pub fn export_adapter(source: &ExportSource, options: &ExportOptions) -> Result<FileStream> {
    check_kind(source, ExportFormat::Peft)?;
    let base = options.card.as_ref().and_then(|card| card.base_model.as_deref());
    let mut stream = FileStream::summed();
    let beside = source.base.as_ref().and_then(|base| base.weights_digest);
    push_adapter(&mut stream, source, options.dtype.tensor_type(), base, beside)?;
    stream.push_bytes("README.md", card(source, options)?.into_bytes());
    let mut receipt = source.draft();
    if base.is_none() && !source.assets.kept.contains_key("base_model_name_or_path") {
        receipt.warnings.push(ReceiptWarning::from(&Warning::new(word!("adapter.base.unnamed"), ADAPTER_CONFIG)));
    }
    stream.push_receipt(RECEIPT, receipt)?;
    Ok(stream)
}

/// Adds the two files of PEFT, the tensors as `to`, or without it as they are stored. The digest of the base that they were trained on is
/// written as metadata.
pub(super) fn push_adapter(
    stream: &mut FileStream,
    source: &ExportSource,
    to: Option<TensorType>,
    base_name: Option<&str>,
    beside: Option<Digest>,
) -> Result<()> {
    let settings = source.adapter_settings.clone().unwrap_or_default();
    let mut metadata = BTreeMap::from([("format".to_string(), "pt".to_string())]);
    metadata.extend(beside.map(|digest| (BASE_DIGEST.to_string(), digest.to_string())));
    stream.push_safetensors_as(ADAPTER_WEIGHTS, adapter_tensors(source.weights.tensors.clone()), to, &metadata)?;
    let document = adapter_document(&settings, &source.weights.config, base_name, &source.assets.kept)?;
    stream.push_bytes(ADAPTER_CONFIG, document.into_bytes());
    Ok(())
}

/// Checks that the format fits the kind of model: an adapter or a whole model.
///
/// # Errors
/// `export.adapter` for a format that does not fit.
pub fn check_kind(source: &ExportSource, format: ExportFormat) -> Result<()> {
    let refusal = Refusal::new(word!("export.adapter"));
    match (&source.adapter_settings, format) {
        (Some(_), ExportFormat::Peft | ExportFormat::GgufAdapter) => Ok(()),
        (None, ExportFormat::Safetensors | ExportFormat::Gguf | ExportFormat::Json) => Ok(()),
        (Some(_), _) => {
            let expected = "peft or gguf-adapter: only an adapter was trained";
            let hint = "merge it into the base: safetensors and gguf with the files of the base";
            Err(refusal.expected(expected).found(format.word()).hint(hint).into())
        }
        (None, _) => Err(refusal.expected("the format of a whole model: no adapter was trained").found(format.word()).into()),
    }
}
