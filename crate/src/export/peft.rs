//! Writes an adapter as a folder of PEFT.

use std::collections::BTreeMap;

use super::card::card;
use super::choice::ExportChoice;
use super::format::{BaseFiles, Exporting, Format};
use super::options::ExportOptions;
use super::source::ExportSource;
use super::{ExportFormat, check_kind};
use crate::bundle::{
    ADAPTER_CONFIG, ADAPTER_WEIGHTS, BASE_DIGEST, Contents, FileStream, adapter_tensors,
};
use crate::error::{Result, Warning, word};
use crate::model::adapter_document;
use crate::state::{RECEIPT, ReceiptWarning};

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
    let mut metadata = BTreeMap::from([("format".to_string(), "pt".to_string())]);
    metadata.extend(beside.map(|digest| (BASE_DIGEST.to_string(), digest.to_string())));
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
    stream.push_bytes(
        "README.md",
        card(source, options, stream.changes())?.into_bytes(),
    );
    let mut receipt = source.draft();
    if base.is_none() && !source.assets.kept.contains_key("base_model_name_or_path") {
        receipt.warnings.push(ReceiptWarning::from(&Warning::new(
            word!("adapter.base.unnamed"),
            ADAPTER_CONFIG,
        )));
    }
    stream.allow_non_finite(options.allow_non_finite);
    stream.push_receipt(RECEIPT, receipt)?;
    Ok(stream)
}

/// The adapter of a run as a folder.
pub(super) struct Peft;

impl Format for Peft {
    fn word(&self) -> &'static str {
        "peft"
    }

    fn about(&self) -> &'static str {
        "LoRA adapter, PEFT folder"
    }

    fn is_of_adapter(&self) -> bool {
        true
    }

    fn own_options(&self) -> &'static [&'static str] {
        &["base", "dtype"]
    }

    fn export<'a>(
        &self,
        source: &'a ExportSource,
        _: BaseFiles,
        options: &'a ExportOptions,
    ) -> Exporting<'a> {
        Box::pin(async move { export_adapter(source, options) })
    }

    fn choices(&self, source: &ExportSource) -> Vec<ExportChoice> {
        let plan = |_| {
            ExportChoice::planned(
                ExportFormat::Peft,
                None,
                export_adapter(source, &ExportOptions::default()),
            )
        };
        source.adapter_settings.iter().map(plan).collect()
    }
}
