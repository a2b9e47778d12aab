//! Converts everything the next step depends on to files and back: `model.safetensors`, `optimizer.safetensors`, the model's documents, and
//! last `checkpoint.json`, which names the SHA-256 of each piece of the others. A checkpoint folder is also a Hugging Face folder.

mod manifest;
mod pieces;
mod settings;

pub use crate::bundle::{Base, BaseFile};
pub use manifest::{Environment, FORMAT_VERSION, FileRecord, MANIFEST, Manifest};
pub use pieces::{pieces_of, sha256};
pub use settings::can_override;

use std::collections::BTreeMap;

use burn::tensor::Device;

use crate::bundle::{Bundle, ByteSource, FileStream, ModelAssets, SafetensorsFile, SafetensorsTensor, StreamTensor, StreamValues};
use crate::config::TrainConfig;
use crate::data::{Dataset, LoaderState};
use crate::error::{Error, Fault, Result, word};
use crate::interrupt::Interrupt;
use crate::model::{Model, open_model};
use crate::optim::{Optim, ParamInfo, SavedState, StateData, StateTensor};
use crate::schedule;
use crate::train::{Notice, Trainer};

const WEIGHTS: &str = "model.safetensors";
const OPTIMIZER: &str = "optimizer.safetensors";

/// What a checkpoint says beside the state of its run.
#[derive(Debug, Clone)]
pub struct Origin {
    /// Where the run is being trained now.
    pub environment: Environment,
    /// What the run started from.
    pub base: Option<Base>,
}

/// The files of `trainer`'s checkpoint. It only reads: the next step gives the same bits with or without it. The SHA-256 of each piece has
/// to be passed to [`FileStream::hashed`] before `checkpoint.json`, which contains them, is requested.
pub fn write(trainer: &Trainer, assets: &ModelAssets, origin: &Origin) -> Result<FileStream> {
    let mut stream = FileStream::new();
    let metadata = BTreeMap::from([("format".to_string(), "pt".to_string())]);
    stream.push_safetensors(WEIGHTS, trainer.model().stream_tensors(), &metadata)?;
    stream.push_safetensors(OPTIMIZER, state_tensors(trainer.optim()), &metadata)?;
    for (name, bytes) in assets.documents_for(trainer.model().config(), trainer.model().precision())? {
        stream.push_bytes(&name, bytes);
    }
    let files = stream.files().to_vec();
    let manifest = Manifest {
        format: manifest::FORMAT.into(),
        version: FORMAT_VERSION,
        written_by: env!("CARGO_PKG_VERSION").into(),
        model: trainer.model().config().clone(),
        precision: trainer.model().precision(),
        train: trainer.config().clone(),
        progress: trainer.progress(),
        loader: trainer.loader_state(),
        data_digest: trainer.dataset().digest(),
        with_state: Some(trainer.optim().with_state()),
        base: origin.base.clone(),
        environment: Some(origin.environment.clone()),
        files: Vec::new(),
    };
    stream.push_sealed(MANIFEST, move |digests| {
        let records = files.iter().zip(digests).map(|(file, pieces)| FileRecord {
            name: file.name.clone(),
            bytes: file.bytes,
            pieces: Some(pieces.clone()),
            sha256: None,
        });
        let manifest = Manifest { files: records.collect(), ..manifest.clone() };
        let text = serde_json::to_string_pretty(&manifest).map_err(|error| corrupt(MANIFEST, error))?;
        Ok((text + "\n").into_bytes())
    })?;
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

/// The entries of an optimizer file; their values are read on demand.
fn saved_state(source: &dyn ByteSource) -> Result<Vec<SavedState<'_>>> {
    let entry = |tensor: SafetensorsTensor| SavedState {
        name: tensor.name,
        dtype: tensor.dtype,
        shape: tensor.shape,
        bytes: tensor.end - tensor.begin,
        read: Box::new(move |at, buffer| source.read_at(tensor.begin + at, buffer)),
    };
    Ok(SafetensorsFile::open(source)?.tensors.into_iter().map(entry).collect())
}

fn corrupt(what: &str, reason: impl std::fmt::Display) -> Error {
    Error::CheckpointCorrupt { what: what.to_string(), reason: reason.to_string() }
}

/// An opened checkpoint.
pub struct Checkpoint {
    manifest: Manifest,
    bundle: Bundle,
    optimizer: Box<dyn ByteSource>,
}

impl Checkpoint {
    /// Opens the files of one checkpoint and verifies each byte. Refuses a missing, cut or changed file and a newer format.
    pub fn open(files: Vec<Box<dyn ByteSource>>) -> Result<Self> {
        Self::opened(files, true)
    }

    /// Opens files whose bytes the caller has verified; only their lengths are checked.
    pub fn open_verified(files: Vec<Box<dyn ByteSource>>) -> Result<Self> {
        Self::opened(files, false)
    }

    fn opened(files: Vec<Box<dyn ByteSource>>, verify: bool) -> Result<Self> {
        let mut by_name: BTreeMap<String, Box<dyn ByteSource>> = files.into_iter().map(|file| (file.name().to_string(), file)).collect();
        let manifest = by_name.remove(MANIFEST).ok_or_else(|| corrupt(MANIFEST, "the file is absent: the checkpoint is incomplete"))?;
        let manifest = manifest::read(manifest.as_ref())?;
        let mut sources = Vec::new();
        let mut optimizer = None;
        for record in &manifest.files {
            let source = by_name.remove(&record.name).ok_or_else(|| corrupt(&record.name, "the file is absent"))?;
            pieces::check_length(source.as_ref(), record)?;
            if verify {
                pieces::check_bytes(source.as_ref(), record)?;
            }
            if record.name == OPTIMIZER { optimizer = Some(source) } else { sources.push(source) }
        }
        let optimizer = optimizer.ok_or_else(|| corrupt(OPTIMIZER, "the manifest does not name it"))?;
        Ok(Self { manifest, bundle: open_model(sources)?, optimizer })
    }

    /// What `checkpoint.json` says.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Weights, configuration and tokenizer.
    pub fn bundle(&self) -> &Bundle {
        &self.bundle
    }

    /// The warning that the run continues in another environment, if that may give other bits.
    pub fn other_environment(&self, now: &Environment) -> Option<Notice> {
        let of_version_1 =
            || Environment { version: self.manifest.written_by.clone(), adapter: String::new(), kernels: now.kernels.clone() };
        let saved = self.manifest.environment.clone().unwrap_or_else(of_version_1);
        let changes = saved.differs(now)?;
        let message = format!("saved elsewhere ({changes}): the next steps may differ from the unbroken run's in their last digits");
        Some(Notice { code: word!("checkpoint.environment").text(), subject: None, message })
    }

    /// The run, ready for its next step. `config` may change what only shapes the rest of the schedule, and the keys that `overrides` names
    /// (`optimizer.weight_decay`, all below `optimizer`, or `all`); any other difference is refused with the full list. Other data are refused
    /// too, unless `overrides` names `data`: their order then begins anew. What the saved state and the data order depend on cannot be
    /// overridden: kinds of optimizer, precision, seed, sequence length, share kept for evaluation. A new learning rate, or one that
    /// `overrides` names, ends a rate set by hand. The state of parameters that are frozen now is left out. [`Trainer::notices`] tells
    /// about such consequences.
    pub async fn resume(
        &self,
        dataset: Dataset,
        config: Option<TrainConfig>,
        overrides: &[String],
        device: &Device,
        interrupt: &Interrupt,
    ) -> Result<Trainer> {
        let saved = &self.manifest.train;
        let (digest, named) = (dataset.digest(), overrides.iter().any(|name| name == settings::DATA));
        let other_data = digest != self.manifest.data_digest;
        let rule = || format!("the data of the checkpoint, SHA-256 {}", self.manifest.data_digest);
        let unnamed = (other_data && !named).then(|| Fault::new(settings::DATA, rule(), &digest));
        let config = settings::accept(saved, config.unwrap_or_else(|| saved.clone()), overrides, Vec::from_iter(unnamed))?;
        let mut notices = Vec::new();
        let loader = if other_data { self.loader_of(digest, &mut notices) } else { self.manifest.loader.clone() };
        let model = Model::from_bundle(&self.bundle, self.manifest.precision, device, interrupt).await?;
        let mut progress = self.manifest.progress;
        if settings::sets_rate(saved, &config, overrides) {
            progress.manual_learning_rate = None;
        }
        progress.schedule_start = schedule::resolve_start(&config.schedule, progress.schedule_start, progress.completed_steps);
        let with_state = self.with_state(&model.parameters())?;
        let mut trainer = Trainer::resume(model, dataset, loader, config, progress)?;
        let entries = saved_state(self.optimizer.as_ref())?;
        let dropped = trainer.optim_mut().load_state(entries, &with_state, device, interrupt).await?;
        if !dropped.is_empty() {
            let message = format!("frozen now, their optimizer state is dropped: {}", dropped.join(", "));
            notices.push(Notice { code: word!("optim.state-dropped").text(), subject: Some(dropped.join(", ")), message });
        }
        trainer.add_notices(notices);
        Ok(trainer)
    }

    /// The state of the loader at the beginning of other data.
    fn loader_of(&self, digest: String, notices: &mut Vec<Notice>) -> LoaderState {
        let saved = &self.manifest.data_digest;
        let message = format!("the run goes on with other data, whose order begins anew: SHA-256 {digest}, saved with {saved}");
        notices.push(Notice { code: word!("checkpoint.data.changed").text(), subject: None, message });
        LoaderState { epoch: 0, cursor: 0, digest, ..self.manifest.loader.clone() }
    }

    /// The parameters whose state was saved. Version 1 does not name them: there each that was trained has state from the first step on.
    fn with_state(&self, parameters: &[ParamInfo]) -> Result<Vec<String>> {
        if let Some(names) = &self.manifest.with_state {
            return Ok(names.clone());
        }
        if self.manifest.progress.completed_steps == 0 {
            return Ok(Vec::new());
        }
        let saved = Optim::new(&self.manifest.train, parameters)?;
        Ok(parameters.iter().map(|parameter| parameter.name.clone()).filter(|name| !saved.frozen(name)).collect())
    }
}
