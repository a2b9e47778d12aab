//! Writes the files of a checkpoint from a live trainer.

use std::collections::BTreeMap;

use super::manifest::{Environment, FORMAT_VERSION, MANIFEST, Manifest};
use super::pieces::FileRecord;
use super::{OPTIMIZER, WEIGHTS, corrupt, manifest};
use crate::bundle::{
    ADAPTER_CONFIG, ADAPTER_WEIGHTS, FileStream, ModelAssets, PortableTokenizerBinding,
    adapter_tensors,
};
use crate::config::ModelConfig;
use crate::error::Result;
use crate::formats::{ByteSource, base_name};
use crate::model::adapter_document;
use crate::state::{Base, Evaluation, Identity, TensorRecord};
use crate::train::{Progress, Trainer};

/// Facts that a checkpoint states in addition to the state of its run.
#[derive(Debug, Clone)]
pub struct Origin {
    /// Environment in which the run is being trained.
    pub environment: Environment,
    /// Model that the run started from.
    pub base: Option<Base>,
}

/// Writes the files of `trainer`'s checkpoint. It only reads: the next step gives the same bits with or without it. The SHA-256 of each piece
/// must be passed to [`FileStream::hashed`] before `checkpoint.json`, which contains them, is requested.
///
/// # Errors
/// `session.busy` for a run whose last reports are still on the device ([`Trainer::settle`]).
pub fn write(trainer: &Trainer, assets: &ModelAssets, origin: &Origin) -> Result<FileStream> {
    trainer.check_settled()?;
    let mut stream = FileStream::new();
    let metadata = BTreeMap::from([("format".to_string(), "pt".to_string())]);
    let mut tensors = BTreeMap::new();
    let adapter = trainer.model().adaptation().is_some();
    let weights = if adapter { ADAPTER_WEIGHTS } else { WEIGHTS };
    for (file, list) in [
        (weights, trainer.model().stream_tensors()),
        (OPTIMIZER, trainer.state_stream()),
    ] {
        for tensor in &list {
            let record = TensorRecord::new(tensor.manifest(), file);
            tensors.insert(tensor.name.clone(), record);
        }
        let list = if adapter && file == weights {
            adapter_tensors(list)
        } else {
            list
        };
        stream.push_safetensors(file, list, &metadata)?;
    }
    let mut documents =
        assets.documents_for(trainer.model().config(), trainer.model().precision())?;
    if let Some(settings) = trainer.config().adapter.as_ref().filter(|_| adapter) {
        let document = adapter_document(settings, trainer.model().config(), None, &assets.kept)?;
        documents.push((ADAPTER_CONFIG.to_string(), document.into_bytes()));
    }
    for (name, bytes) in &documents {
        // A checkpoint may be one file or lie in the browser's storage: its files are in no folder.
        stream.push_bytes(base_name(name), bytes.clone());
    }
    // Documents that contradict each other are no reason to lose a run: they are saved all the same.
    let tokenizer = PortableTokenizerBinding::from_documents(&documents.into_iter().collect())
        .ok()
        .flatten();
    let files = stream.files().to_vec();
    let manifest = Manifest {
        format: manifest::FORMAT.into(),
        version: FORMAT_VERSION,
        written_by: env!("CARGO_PKG_VERSION").into(),
        identity: identity(trainer.model().config(), trainer.progress()),
        model: trainer.model().config().clone(),
        precision: trainer.model().precision(),
        train: trainer.config().clone(),
        progress: trainer.progress(),
        loader: trainer.loader_state(),
        data_digest: trainer.dataset().digest(),
        base: origin.base.clone(),
        tensors,
        groups: trainer.groups(),
        tokenizer: tokenizer.map(|(binding, _)| binding.account()),
        environment: origin.environment.clone(),
        files: Vec::new(),
    };
    stream.push_sealed(MANIFEST, move |digests| {
        let records = files.iter().zip(digests).map(|(file, pieces)| FileRecord {
            name: file.name.clone(),
            bytes: file.bytes,
            pieces: pieces.clone(),
        });
        let manifest = Manifest {
            files: records.collect(),
            ..manifest.clone()
        };
        document(&manifest)
    })?;
    Ok(stream)
}

/// Returns `checkpoint.json` of a saved run with a later evaluation of it; its other files stay as they are.
///
/// # Errors
/// The errors of [`manifest::read`]; `checkpoint.corrupt` if it is the checkpoint of another step.
pub fn with_evaluation(saved: &dyn ByteSource, evaluation: Evaluation) -> Result<Vec<u8>> {
    let mut manifest = manifest::read(saved)?;
    let step = manifest.progress.completed_steps;
    if step != evaluation.step {
        return Err(corrupt(
            "progress.completed_steps",
            format!(
                "expected {}, the step that was evaluated, found {step}",
                evaluation.step
            ),
        ));
    }
    manifest.progress.evaluation = Some(evaluation);
    document(&manifest)
}

fn document(manifest: &Manifest) -> Result<Vec<u8>> {
    let text = serde_json::to_string_pretty(manifest).map_err(|error| corrupt(MANIFEST, error))?;
    Ok((text + "\n").into_bytes())
}

/// Returns the identity of the state of a run.
fn identity(model: &ModelConfig, progress: Progress) -> Identity {
    Identity {
        model_family: model.model_type.clone(),
        revision: String::new(),
        checkpoint_family: "tabtune.train".into(),
        checkpoint_ref: Some(format!("step-{}", progress.completed_steps)),
    }
}
