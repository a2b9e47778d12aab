//! Writes an adapter as a folder of PEFT.

use std::future::ready;

use super::card::card;
use super::choice::ExportChoice;
use super::format::Format;
use super::options::ExportOptions;
use super::source::ExportSource;
use super::{ExportFormat, check_kind};
use crate::bundle::{
    ADAPTER_CONFIG, ADAPTER_WEIGHTS, BASE_DIGEST, Contents, FileStream, adapter_tensors, format_pt,
};
use crate::error::{Result, Warning, word};
use crate::model::adapter_document;
use crate::state::ReceiptWarning;

/// Writes the folder that PEFT and tabtune load in addition to the base: `adapter_config.json` and `adapter_model.safetensors` with the trained
/// tensors as they are stored, a card, and last the receipt.
///
/// # Errors
/// `export.adapter` for a whole model, those of [`AdapterConfig::resolve`](crate::config::AdapterConfig::resolve); while the stream is read,
/// `export.overflow` for finite values beyond their dtype.
pub(crate) fn export_adapter(source: &ExportSource, options: &ExportOptions) -> Result<FileStream> {
    check_kind(source, ExportFormat::Peft)?;
    let base = options
        .card
        .as_ref()
        .and_then(|card| card.base_model.as_deref());
    let mut stream = FileStream::summed();
    // A digest that the last resume did not compare may be that of another base.
    let beside = source
        .base
        .as_ref()
        .filter(|base| base.verified.is_none())
        .and_then(|base| base.weights_digest);
    let settings = source.adapter_settings.clone().unwrap_or_default();
    let metadata = format_pt(beside.map(|digest| (BASE_DIGEST, digest.to_string())));
    stream.push_safetensors_as(
        ADAPTER_WEIGHTS,
        adapter_tensors(source.weights.tensors.clone()),
        options.dtype.tensor_type(),
        Contents::Weights,
        &metadata,
    )?;
    let (config, kept) = (&source.weights.config, &source.assets.kept);
    let document = adapter_document(&settings, config, base, kept)?;
    stream.push_bytes(ADAPTER_CONFIG, document.into_bytes());
    let card = card(source, options, stream.changes());
    stream.push_bytes("README.md", card.into_bytes());
    let mut receipt = source.draft();
    if base.is_none() && !source.assets.kept.contains_key("base_model_name_or_path") {
        receipt.warnings.push(ReceiptWarning::from(&Warning::new(
            word!("adapter.base.unnamed"),
            ADAPTER_CONFIG,
        )));
    }
    options.finish(stream, receipt)
}

/// The adapter of a run as a folder.
pub(super) const FORMAT: Format = Format {
    word: "peft",
    about: "LoRA adapter, PEFT folder",
    ending: "",
    is_of_adapter: true,
    own_options: &["base", "dtype"],
    export: |source, _, options| Box::pin(ready(export_adapter(source, options))),
    choices: |source| {
        let plan = |_| {
            let adapter = export_adapter(source, &ExportOptions::default());
            ExportChoice::planned(ExportFormat::Peft, None, adapter)
        };
        source.adapter_settings.iter().map(plan).collect()
    },
};
