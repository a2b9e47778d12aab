//! Computes the formats that a model can be exported to, and the contract that states the same: one computation for people and programs.

use super::contract::{ContractFacts, ModelIoCompatibilityContract};
use crate::error::Result;
use crate::export::{ExportChoice, ExportFormat, ExportSource, export_choices};
use crate::state::{Base, Tensor};

/// The export choices of `source`, and the contract that states the same. Nothing is read.
///
/// # Errors
/// The errors of [`ModelIoCompatibilityContract::of`].
pub fn export_options_of(
    source: &ExportSource,
) -> Result<(Vec<ExportChoice>, ModelIoCompatibilityContract)> {
    let choices = export_choices(source);
    let of_gguf = || {
        choices
            .iter()
            .filter(|choice| choice.format == ExportFormat::Gguf)
    };
    let refused = of_gguf().all(|choice| !choice.ok || choice.needs.is_some());
    let reason = of_gguf().find_map(|choice| choice.plain.as_deref());
    let recipe_refused = refused
        .then(|| reason.unwrap_or("the tokenizer or the model has no place in a new GGUF file"));
    let facts = ContractFacts {
        state_digest: None,
        config: Some(&source.weights.config),
        recipe_refused,
        adapter: source.adapter_settings.is_some(),
        gguf_base: source.base.as_ref().is_some_and(Base::is_gguf),
    };
    let tensors = &source.weights.tensors;
    let tensors: Vec<_> = tensors.iter().map(Tensor::manifest).collect();
    let contract = ModelIoCompatibilityContract::of(&source.identity, facts, &tensors)?;
    Ok((choices, contract))
}
