//! Turns a bundle of plain data into the source of an export.

use super::bundle::PortableModelBundle;
use crate::bundle::ModelAssets;
use crate::config::ModelConfig;
use crate::error::{Error, Refusal, Result, word};
use crate::export::{ExportSource, Weights};
use crate::model::planned_parameters;
use crate::state::{Bytes, ModelIoArtifactReceipt, SelectionReport, Tensor};

impl PortableModelBundle {
    /// Returns the weights and documents of the bundle, for the writers of folders and GGUF files.
    ///
    /// # Errors
    /// `bundle.config.missing` without a configuration, `model.tensor.missing` and `.unexpected` for tensors that are not the model's.
    pub(super) async fn export_source(&self) -> Result<ExportSource> {
        let metadata = &self.metadata;
        let absent = || {
            Refusal::new(word!("bundle.config.missing"))
                .subject("config.json")
                .expected("a model's configuration")
        };
        let config = metadata.config.clone().ok_or_else(absent)?;
        let state = &self.state_dict;
        let names = self.checked_names(&config)?;
        let (mut tensors, mut optimizer) = (Vec::new(), Vec::new());
        for (key, tensor) in state.tensors() {
            if names.contains(key) {
                tensors.push(readable(tensor).await?);
            } else if tensor.is_state() {
                optimizer.push(readable(tensor).await?);
            }
        }
        let assets = metadata
            .assets
            .clone()
            .unwrap_or_else(|| ModelAssets::of_config(&config, None));
        let ModelIoArtifactReceipt {
            inputs,
            operation,
            tensors: said,
            ..
        } = state.draft();
        Ok(ExportSource {
            base: metadata.base.clone(),
            identity: state.identity.clone(),
            groups: state.groups().to_vec(),
            state: optimizer,
            warnings: metadata.warnings.clone(),
            selection: SelectionReport {
                dropped: said.dropped,
                renamed: said.renamed,
                ..SelectionReport::default()
            },
            made_by: Some((operation, inputs)),
            ..ExportSource::of_weights(
                Weights {
                    config,
                    precision: None,
                    tensors,
                },
                assets,
            )
        })
    }

    /// Returns the names of the model's parameters, all of which must be present, and no others.
    fn checked_names(&self, config: &ModelConfig) -> Result<Vec<String>> {
        let planned: Vec<String> = planned_parameters(config)?
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        let tensors = self.state_dict.tensors();
        let missing: Vec<String> = planned
            .iter()
            .filter(|name| !tensors.contains_key(*name))
            .cloned()
            .collect();
        if !missing.is_empty() {
            return Err(Error::MissingTensors(missing));
        }
        let own = tensors
            .iter()
            .filter(|(_, entry)| !entry.is_state())
            .map(|(key, _)| key);
        let further: Vec<String> = own.filter(|key| !planned.contains(key)).cloned().collect();
        if further.is_empty() {
            Ok(planned)
        } else {
            Err(Error::UnexpectedTensors(further))
        }
    }
}

/// Returns the tensor as writers read it: bytes that are computed from two others are held in memory.
async fn readable(tensor: &Tensor) -> Result<Tensor> {
    match tensor.bytes() {
        Bytes::Merged(_) | Bytes::Moved(_) | Bytes::Encoded(_) => tensor.clone().held().await,
        _ => Ok(tensor.clone()),
    }
}
