//! A checkpoint as the source of an export.

use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::export::{ExportSource, Weights, training_record};

/// Describes the state of a checkpoint, to be exported without a device; for a run with an adapter, the adapter alone.
///
/// # Errors
/// `model.tensor.missing` for weights that the checkpoint lacks, `config.invalid` for settings that are no JSON.
pub fn checkpoint_source(checkpoint: &Checkpoint, data_name: &str) -> Result<ExportSource> {
    let bundle = checkpoint.shared_bundle();
    let manifest = checkpoint.manifest();
    let adapter = manifest.train.adapter.clone();
    let weights = if adapter.is_some() {
        Weights::of_names(&bundle, checkpoint.weight_names())?
    } else {
        Weights::of_bundle(&bundle)?
    };
    Ok(ExportSource {
        weights,
        adapter: Vec::new(),
        adapter_settings: adapter,
        base: manifest.base.clone(),
        training: Some(training_record(
            &manifest.train,
            manifest.progress,
            &manifest.data_digest,
            data_name,
            None,
        )?),
        identity: manifest.identity.clone(),
        groups: manifest.groups.clone(),
        state: checkpoint.state_tensors().to_vec(),
        ..ExportSource::of_bundle(&bundle)?
    })
}
