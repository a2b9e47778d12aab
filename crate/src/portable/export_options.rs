//! Computes the formats that a model can be exported to, and the contract that states the same: one computation for people and programs.

use super::contract::{ContractFacts, ModelIoCompatibilityContract};
use crate::bundle::Bundle;
use crate::error::Result;
use crate::export::{ExportChoice, ExportFormat, ExportSource, export_choices};
use crate::state::{Identity, ModelStateTensorManifest};

/// Returns the export choices of an opened model and its contract, from its headers.
///
/// # Errors
/// The errors of [`ExportSource::of_bundle`] and of [`export_options_of`].
pub fn export_options_of_model(
    bundle: &Bundle,
) -> Result<(Vec<ExportChoice>, ModelIoCompatibilityContract)> {
    let identity = Identity {
        model_family: bundle.config.model_type.clone(),
        ..Identity::default()
    };
    let source = ExportSource::of_bundle(bundle)?;
    export_options_of(&source, &identity, bundle_tensors(bundle).iter())
}

/// Returns the export choices of `source`, and the contract that states the same.
///
/// # Errors
/// The errors of [`ModelIoCompatibilityContract::of`].
pub fn export_options_of<'a>(
    source: &ExportSource,
    identity: &Identity,
    tensors: impl Iterator<Item = &'a ModelStateTensorManifest> + Clone,
) -> Result<(Vec<ExportChoice>, ModelIoCompatibilityContract)> {
    let choices = export_choices(source);
    let made = |choice: &&ExportChoice| choice.format == ExportFormat::Gguf;
    let refused = choices
        .iter()
        .filter(made)
        .all(|choice| !choice.ok || choice.needs.is_some());
    let reason = choices
        .iter()
        .filter(made)
        .find_map(|choice| choice.plain.clone());
    let facts = ContractFacts {
        identity,
        state_digest: None,
        config: Some(&source.weights.config),
        recipe_refused: refused.then(|| {
            reason
                .as_deref()
                .unwrap_or("the tokenizer or the model has no place in a new GGUF file")
        }),
        adapter: source.adapter_settings.is_some(),
        gguf_base: source
            .base
            .as_ref()
            .is_some_and(|base| base.format == "gguf"),
        non_finite: None,
    };
    let contract = ModelIoCompatibilityContract::of(facts, tensors)?;
    Ok((choices, contract))
}

/// Returns the tensors of a model as a state dict lists them.
pub(super) fn bundle_tensors(bundle: &Bundle) -> Vec<ModelStateTensorManifest> {
    let one = |name: String| {
        let shape: Vec<u64> = bundle
            .shape(&name)?
            .into_iter()
            .map(|dim| dim as u64)
            .collect();
        Some(ModelStateTensorManifest::parameter(
            &name,
            &bundle.dtype(&name)?,
            &shape,
        ))
    };
    bundle.names().into_iter().filter_map(one).collect()
}
