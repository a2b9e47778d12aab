//! Writes the files of a checkpoint from a live trainer.

use super::corrupt;
use super::manifest::{self, Environment, FORMAT_VERSION, MANIFEST, Manifest, weights_file};
use super::pieces::FileRecord;
use super::state::records;
use crate::bundle::{
    ADAPTER_CONFIG, FileStream, ModelAssets, PortableTokenizerBinding, adapter_tensors, format_pt,
};
use crate::error::Result;
use crate::formats::{ByteSource, base_name};
use crate::model::adapter_document;
use crate::state::{Base, Evaluation, Identity, OPTIMIZER_FILE};
use crate::train::Trainer;

/// Facts that a checkpoint states in addition to the state of its run ([example](crate::checkpoint)).
#[derive(Debug, Clone)]
pub struct Origin {
    /// Environment in which the run is being trained.
    pub environment: Environment,
    /// Model that the run started from.
    pub base: Option<Base>,
}

/// Writes the files of `trainer`'s checkpoint. It only reads: the next step gives the same bits with or without it. The SHA-256 of each piece
/// must be passed to [`FileStream::hashed`] before `checkpoint.json`, which contains them, is requested ([example](crate::checkpoint)).
///
/// # Errors
/// `session.busy` for a run whose last reports are still on the device ([`Trainer::settle`]).
pub fn write(trainer: &Trainer, assets: &ModelAssets, origin: &Origin) -> Result<FileStream> {
    trainer.check_settled()?;
    let (model, precision) = (trainer.model().config(), trainer.model().precision());
    let progress = trainer.progress();
    let (mut weights, state) = (trainer.model().stream_tensors(), trainer.state_stream());
    let adapter = trainer.config().adapter.as_ref();
    let adapter = adapter.filter(|_| trainer.model().adaptation().is_some());
    let weights_file = weights_file(adapter.is_some());
    let tensors = records(weights_file, &weights)
        .chain(records(OPTIMIZER_FILE, &state))
        .collect();
    let mut documents = assets.documents_for(model, precision)?;
    if let Some(settings) = adapter {
        weights = adapter_tensors(weights);
        let document = adapter_document(settings, model, None, &assets.kept)?;
        documents.push((ADAPTER_CONFIG.to_string(), document.into_bytes()));
    }
    let mut stream = FileStream::new();
    stream.push_safetensors(weights_file, weights, &format_pt(None))?;
    stream.push_safetensors(OPTIMIZER_FILE, state, &format_pt(None))?;
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
        identity: Identity::of_run(&model.model_type, progress.completed_steps),
        model: model.clone(),
        precision,
        train: trainer.config().clone(),
        progress,
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

/// Writes `checkpoint.json` of a saved run with a later evaluation of it; its other files stay as they are.
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
