//! Turns a bundle of plain data into the source of an export.

use std::rc::Rc;

use super::bundle::PortableModelBundle;
use crate::bundle::{Bundle, ModelAssets, StoredTensor, StreamTensor, StreamValues};
use crate::config::ModelConfig;
use crate::error::{Error, Fault, Refusal, Result, word};
use crate::export::{ExportSource, Weights};
use crate::formats::{MemorySource, SourceSpan};
use crate::model::planned_parameters;
use crate::state::{ModelIoArtifactReceipt, StateTensorEntry};

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
        let (mut tensors, mut stored) = (Vec::new(), Vec::new());
        for (key, entry) in state
            .tensors()
            .iter()
            .filter(|(key, _)| names.contains(key))
        {
            match entry.payload.on_device() {
                Some(handle) => tensors.push(stream_tensor(
                    key,
                    entry,
                    StreamValues::Device(handle.clone()),
                )?),
                None => stored.push((entry.manifest.clone(), span_of(entry).await?)),
            }
        }
        let bundle = Rc::new(Bundle::of_tensors(config.clone(), stored)?);
        for name in bundle.names() {
            let tensor = StoredTensor::new(&bundle, &name)?;
            tensors.push(StreamTensor {
                shape: tensor.shape().to_vec(),
                values: StreamValues::Stored(tensor),
                name,
            });
        }
        let mut optimizer = Vec::new();
        for (key, entry) in state.tensors().iter().filter(|(_, entry)| entry.is_state()) {
            let values = match entry.payload.on_device() {
                Some(handle) => StreamValues::Device(handle.clone()),
                None => StreamValues::Copied(entry.manifest.dtype.clone(), span_of(entry).await?),
            };
            optimizer.push(stream_tensor(key, entry, values)?);
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
            selection: crate::state::SelectionReport {
                dropped: said.dropped,
                renamed: said.renamed,
                ..Default::default()
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

/// Returns the bytes of a tensor that is not on the device; bytes that are computed from two others are held in memory.
async fn span_of(entry: &StateTensorEntry) -> Result<SourceSpan> {
    if let Some(span) = entry.payload.span() {
        return Ok(span);
    }
    let bytes = entry.payload.bytes().await?;
    Ok(SourceSpan {
        begin: 0,
        bytes: bytes.len() as u64,
        source: Rc::new(MemorySource::new("", bytes.to_vec())),
    })
}

fn stream_tensor(
    key: &str,
    entry: &StateTensorEntry,
    values: StreamValues,
) -> Result<StreamTensor> {
    let wide = |_| {
        Error::InvalidConfig(vec![Fault::new(
            "shape",
            "dimensions that this machine can address",
            format!("{:?}", entry.manifest.shape),
        )])
    };
    let shape = entry
        .manifest
        .shape
        .iter()
        .map(|&dim| usize::try_from(dim))
        .collect::<std::result::Result<_, _>>()
        .map_err(wide)?;
    Ok(StreamTensor {
        name: key.to_string(),
        shape,
        values,
    })
}
