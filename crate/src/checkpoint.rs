//! Everything the next step depends on ⇄ files: `model.safetensors`, `optimizer.safetensors`, the model's documents, and last
//! `checkpoint.json`, which names the SHA-256 of the others. A checkpoint folder is also a Hugging Face folder.

mod settings;

pub use settings::can_override;

use std::collections::BTreeMap;

use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::bundle::{
    Bundle, ByteSource, FileStream, ModelAssets, SafetensorsFile, SafetensorsTensor, StreamTensor, StreamValues, digest_of, open_bundle,
};
use crate::config::{ModelConfig, Precision, TrainConfig};
use crate::data::{Dataset, LoaderState};
use crate::error::{Error, Fault, Result};
use crate::model::Model;
use crate::optim::{Optim, SavedState, StateData, StateTensor};
use crate::schedule;
use crate::train::{Progress, Trainer, check_rate};

/// Newest format that this version reads and the one it writes.
pub const FORMAT_VERSION: u64 = 1;
/// The document that makes a checkpoint complete.
pub const MANIFEST: &str = "checkpoint.json";
const FORMAT: &str = "tabtune.checkpoint";
const WEIGHTS: &str = "model.safetensors";
const OPTIMIZER: &str = "optimizer.safetensors";
/// No manifest is longer.
const MAX_MANIFEST_BYTES: u64 = 64 << 20;
/// Counts stay exact as JavaScript's numbers (`optimizers.md` §10).
const MAX_COUNT: u64 = (1 << 53) - 1;

/// One file of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileRecord {
    /// File name.
    pub name: String,
    /// Size.
    pub bytes: u64,
    /// SHA-256, lower-case hex.
    pub sha256: String,
}

/// The contents of `checkpoint.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Always `tabtune.checkpoint`.
    pub format: String,
    /// [`FORMAT_VERSION`].
    pub version: u64,
    /// Version of tabtune that wrote it.
    pub written_by: String,
    /// Shape of the model.
    pub model: ModelConfig,
    /// Storage of its matrices.
    pub precision: Precision,
    /// Settings of the run.
    pub train: TrainConfig,
    /// Where the run stands.
    pub progress: Progress,
    /// Where the data order stands.
    pub loader: LoaderState,
    /// SHA-256 of the token stream.
    pub data_digest: String,
    /// The other files.
    pub files: Vec<FileRecord>,
}

/// The files of `trainer`'s checkpoint. Only reads: the next step gives the same bits with or without it.
pub fn write(trainer: &Trainer, assets: &ModelAssets) -> Result<FileStream> {
    let mut stream = FileStream::new();
    let metadata = BTreeMap::from([("format".to_string(), "pt".to_string())]);
    stream.push_safetensors(WEIGHTS, trainer.model().stream_tensors(), &metadata)?;
    stream.push_safetensors(OPTIMIZER, state_tensors(trainer.optim()), &metadata)?;
    for (name, bytes) in assets.documents_for(trainer.model().config(), trainer.model().precision())? {
        stream.push_bytes(&name, bytes);
    }
    let files = stream.files().iter().enumerate();
    let manifest = Manifest {
        format: FORMAT.into(),
        version: FORMAT_VERSION,
        written_by: env!("CARGO_PKG_VERSION").into(),
        model: trainer.model().config().clone(),
        precision: trainer.model().precision(),
        train: trainer.config().clone(),
        progress: trainer.progress(),
        loader: trainer.loader_state(),
        data_digest: trainer.dataset().digest(),
        files: files.map(|(index, file)| FileRecord { name: file.name.clone(), bytes: file.bytes, sha256: digest_of(index) }).collect(),
    };
    let text = serde_json::to_string_pretty(&manifest).map_err(|error| corrupt(MANIFEST, error))?;
    stream.push_sealed(MANIFEST, text + "\n");
    Ok(stream)
}

fn state_tensors(optim: &Optim) -> Vec<StreamTensor> {
    let stream = |(name, state): (String, StateTensor)| StreamTensor {
        name,
        shape: state.shape,
        values: match state.data {
            StateData::Step(step) => StreamValues::U64(step),
            StateData::Tensor(tensor) => StreamValues::Device(tensor),
        },
    };
    optim.state_tensors().into_iter().map(stream).collect()
}

fn saved_state(source: &dyn ByteSource) -> Result<Vec<SavedState>> {
    let read = |tensor: SafetensorsTensor| {
        let mut bytes = vec![0; (tensor.end - tensor.begin) as usize];
        source.read_at(tensor.begin, &mut bytes)?;
        let shape = tensor.shape.iter().map(|&dim| dim as usize).collect();
        Ok(SavedState { name: tensor.name, dtype: tensor.dtype, shape, bytes })
    };
    SafetensorsFile::open(source)?.tensors.into_iter().map(read).collect()
}

fn corrupt(what: &str, reason: impl std::fmt::Display) -> Error {
    Error::CheckpointCorrupt { what: what.to_string(), reason: reason.to_string() }
}

/// A checkpoint that was opened and whose every byte was verified.
pub struct Checkpoint {
    manifest: Manifest,
    bundle: Bundle,
    optimizer: Box<dyn ByteSource>,
}

impl Checkpoint {
    /// Opens the files of one checkpoint. Refuses a missing, cut or changed file and a newer format.
    pub fn open(files: Vec<Box<dyn ByteSource>>) -> Result<Self> {
        let mut by_name: BTreeMap<String, Box<dyn ByteSource>> = files.into_iter().map(|file| (file.name().to_string(), file)).collect();
        let manifest = by_name.remove(MANIFEST).ok_or_else(|| corrupt(MANIFEST, "the file is absent: the checkpoint is incomplete"))?;
        let manifest = parse(manifest.as_ref())?;
        let mut sources = Vec::new();
        let mut optimizer = None;
        for record in &manifest.files {
            let source = by_name.remove(&record.name).ok_or_else(|| corrupt(&record.name, "the file is absent"))?;
            verify(source.as_ref(), record)?;
            if record.name == OPTIMIZER { optimizer = Some(source) } else { sources.push(source) }
        }
        let optimizer = optimizer.ok_or_else(|| corrupt(OPTIMIZER, "the manifest does not name it"))?;
        Ok(Self { manifest, bundle: open_bundle(sources)?, optimizer })
    }

    /// What `checkpoint.json` says.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Weights, configuration and tokenizer.
    pub fn bundle(&self) -> &Bundle {
        &self.bundle
    }

    /// The run, ready for its next step. `config` may change what only shapes the rest of the schedule, and the keys that `overrides` names
    /// (`optimizer.weight_decay`, all below `optimizer`, or `all`); any other difference is refused with the full list, and so is other data.
    /// What the saved state and the data order depend on cannot be overridden: kinds of optimizer, precision, seed, sequence length, kept share.
    /// A new learning rate, or one that `overrides` names, ends a rate set by hand.
    pub fn resume(&self, dataset: Dataset, config: Option<TrainConfig>, overrides: &[String], device: &Device) -> Result<Trainer> {
        let saved = &self.manifest.train;
        let config = settings::accept(saved, config.unwrap_or_else(|| saved.clone()), overrides)?;
        let digest = dataset.digest();
        if digest != self.manifest.data_digest {
            let rule = format!("the data of the checkpoint, SHA-256 {}", self.manifest.data_digest);
            return Err(Error::ResumeMismatch(vec![Fault::new(settings::DATA, rule, digest)]));
        }
        let model = Model::from_bundle(&self.bundle, self.manifest.precision, device)?;
        let mut progress = self.manifest.progress;
        if settings::sets_rate(saved, &config, overrides) {
            progress.manual_learning_rate = None;
        }
        progress.schedule_start = schedule::resolve_start(&config.schedule, progress.schedule_start, progress.completed_steps);
        let mut trainer = Trainer::resume(model, dataset, self.manifest.loader.clone(), config, progress)?;
        trainer.optim_mut().load_state(saved_state(self.optimizer.as_ref())?, device)?;
        Ok(trainer)
    }
}

fn parse(source: &dyn ByteSource) -> Result<Manifest> {
    if source.len() > MAX_MANIFEST_BYTES {
        return Err(corrupt(MANIFEST, format!("{} bytes, at most {MAX_MANIFEST_BYTES}", source.len())));
    }
    let mut bytes = vec![0; source.len() as usize];
    source.read_at(0, &mut bytes)?;
    let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(|error| corrupt(MANIFEST, error))?;
    if value["format"] != FORMAT {
        return Err(corrupt(MANIFEST, format!("format is {}, expected \"{FORMAT}\"", value["format"])));
    }
    let version = value["version"].as_u64().ok_or_else(|| corrupt(MANIFEST, "no version"))?;
    if version == 0 || version > FORMAT_VERSION {
        return Err(Error::CheckpointVersion { found: version, supported: FORMAT_VERSION });
    }
    let manifest: Manifest = serde_json::from_value(value).map_err(|error| corrupt(MANIFEST, error))?;
    check_progress(&manifest)?;
    Ok(manifest)
}

/// Refuses counts and a rate that no run has.
fn check_progress(manifest: &Manifest) -> Result<()> {
    let Progress { completed_steps, tokens, schedule_start, manual_learning_rate } = manifest.progress;
    let counts = [
        ("progress.completed_steps", completed_steps),
        ("progress.tokens", tokens),
        ("progress.schedule_start", schedule_start.unwrap_or(0)),
        ("loader.epoch", manifest.loader.epoch),
    ];
    if let Some((what, count)) = counts.into_iter().find(|&(_, count)| count > MAX_COUNT) {
        return Err(corrupt(what, format!("expected at most {MAX_COUNT}, found {count}")));
    }
    let Some(rate) = manual_learning_rate else { return Ok(()) };
    check_rate(&manifest.train, "manual_learning_rate", rate).map_err(|error| corrupt("progress", error))
}

fn verify(source: &dyn ByteSource, record: &FileRecord) -> Result<()> {
    if source.len() != record.bytes {
        return Err(corrupt(&record.name, format!("{} bytes, expected {}", source.len(), record.bytes)));
    }
    let mut digest = Sha256::new();
    let mut buffer = vec![0; (8usize << 20).min(source.len() as usize)];
    let mut offset = 0;
    while offset < source.len() {
        let len = buffer.len().min((source.len() - offset) as usize);
        source.read_at(offset, &mut buffer[..len])?;
        digest.update(&buffer[..len]);
        offset += len as u64;
    }
    let found: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    if found == record.sha256 { Ok(()) } else { Err(corrupt(&record.name, format!("SHA-256 {found}, expected {}", record.sha256))) }
}
