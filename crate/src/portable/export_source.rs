//! Turns a bundle of plain data into the source of an export.

use super::bundle::PortableModelBundle;
use super::parameter_names::refuse_other_names;
use crate::bundle::ModelAssets;
use crate::error::{Refusal, Result, word};
use crate::export::{ExportSource, Weights};
use crate::model::planned_parameters;
use crate::state::{Bytes, ModelIoArtifactReceipt, SelectionReport, Tensor};

impl PortableModelBundle {
    /// The weights and documents of the bundle, for the writers of folders and GGUF files.
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
        let parameters = planned_parameters(&config)?;
        let planned: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
        let all = self.state_dict.tensors();
        refuse_other_names(all, &planned, |tensor| !tensor.is_state())?;
        let (mut state, mut tensors) = (Vec::new(), Vec::new());
        for (name, tensor) in all {
            let is_planned = planned.contains(&name.as_str());
            let list = if is_planned { &mut tensors } else { &mut state };
            list.push(readable(tensor).await?);
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
        } = self.state_dict.draft();
        let weights = Weights { config, tensors };
        Ok(ExportSource {
            base: metadata.base.clone(),
            identity: self.state_dict.identity.clone(),
            groups: self.state_dict.groups().to_vec(),
            state,
            warnings: metadata.warnings.clone(),
            selection: SelectionReport {
                dropped: said.dropped,
                renamed: said.renamed,
                ..SelectionReport::default()
            },
            made_by: Some((operation, inputs)),
            ..ExportSource::of_weights(weights, assets)
        })
    }
}

/// The tensor as writers read it: bytes that are computed from two others are held in memory.
async fn readable(tensor: &Tensor) -> Result<Tensor> {
    match tensor.bytes() {
        Bytes::Merged(_) | Bytes::Moved(_) | Bytes::Encoded(_) => tensor.clone().held().await,
        _ => Ok(tensor.clone()),
    }
}
