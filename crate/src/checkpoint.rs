//! Converts everything the next step depends on to files and back: `model.safetensors`, `optimizer.safetensors`, the model's documents, and
//! last `checkpoint.json`, which states the SHA-256 of each piece of the others. A checkpoint folder is also a Hugging Face folder.
//!
//! ```
//! use std::rc::Rc;
//! use tabtune::bundle::{ByteSource, FileStream, ModelAssets};
//! use tabtune::checkpoint::{Checkpoint, Environment, Origin, write};
//! use tabtune::config::Form;
//! use tabtune::data::Dataset;
//! use tabtune::device::Device;
//! use tabtune::interrupt::Interrupt;
//! use tabtune::train::Trainer;
//!
//! /// The files of a run.
//! fn save(trainer: &Trainer, assets: &ModelAssets, device: &Device) -> tabtune::Result<FileStream> {
//!     let environment = Environment::on(&device.inner(), &device.info().adapter);
//!     write(trainer, assets, &Origin { environment, base: None })
//! }
//!
//! /// The run again, with the text that it was trained on.
//! async fn resume(files: Vec<Rc<dyn ByteSource>>, text: &[u8], device: &Device) -> tabtune::Result<Trainer> {
//!     let checkpoint = Checkpoint::open(files, None)?;
//!     let dataset = Dataset::from_bytes(text, Form::Text, checkpoint.bundle().need_tokenizer()?, 0.0)?;
//!     checkpoint.resume(dataset, None, &[], &device.inner(), &Interrupt::none()).await
//! }
//! ```

mod consequences;
mod consistency;
mod jump;
mod manifest;
mod pieces;
mod settings;
mod state;
mod verify;
mod write;

pub use manifest::Environment;
pub(crate) use settings::{accept_settings, takes_groups};
pub(crate) use state::saved_state;
pub use write::{Origin, write};

// For the packages of this workspace.
#[doc(hidden)]
pub use self::{
    manifest::{FORMAT_VERSION, MANIFEST, Manifest, read as read_manifest},
    pieces::{FileRecord, pieces_of, sha256},
    settings::can_override,
    verify::verify_as_model,
    write::with_evaluation,
};
#[doc(hidden)]
pub use crate::state::{Base, BaseFile};

use std::collections::BTreeMap;
use std::rc::Rc;

use burn::tensor::Device;

use crate::bundle::{ADAPTER_CONFIG, ADAPTER_WEIGHTS, Bundle, OpenOptions};
use crate::config::TrainConfig;
use crate::data::Dataset;
use crate::error::{Error, Fault, Refusal, Result, word};
use crate::formats::ByteSource;
use crate::interrupt::Interrupt;
use crate::model::{Model, open_model, open_model_with};
use crate::schedule;
use crate::state::{OPTIMIZER_FILE, Tensor, VerifyPolicy};
use crate::train::{Notice, Trainer};
use jump::jump_of_rate;
use state::open_tensors;

fn corrupt(what: &str, reason: impl std::fmt::Display) -> Error {
    Error::CheckpointCorrupt {
        what: what.to_string(),
        reason: reason.to_string(),
    }
}

/// Base of an adapter's checkpoint.
#[doc(hidden)]
pub enum CheckpointBase {
    /// These files, compared to the extent of the policy; a later checkpoint states a partial comparison.
    Files(Vec<Rc<dyn ByteSource>>, VerifyPolicy),
    /// No base is given, which is refused if the checkpoint is an adapter's.
    Absent,
    /// No base is given, because none of it is needed: the checkpoint is exported, and cannot be resumed.
    Unneeded,
}

/// Opens the base of an adapter's checkpoint and attaches the adapter in the checkpoint's files.
fn open_base(
    manifest: &mut Manifest,
    mut sources: Vec<Rc<dyn ByteSource>>,
    base: CheckpointBase,
) -> Result<Bundle> {
    sources.retain(|file| [ADAPTER_CONFIG, ADAPTER_WEIGHTS].contains(&file.name()));
    let want = manifest
        .base
        .as_mut()
        .ok_or_else(|| corrupt("base", "an adapter's checkpoint names its base"))?;
    let (files, policy) = match base {
        CheckpointBase::Files(files, policy) => (files, policy),
        CheckpointBase::Unneeded => return Bundle::of_adapter(manifest.model.clone(), sources),
        CheckpointBase::Absent => {
            return Err(Refusal::new(word!("checkpoint.base.missing"))
                .stage("bind")
                .of(MANIFEST)
                .subject(&want.name)
                .expected(want.file_names())
                .hint("give the files of the base: the checkpoint has the adapter alone")
                .into());
        }
    };
    // The base is opened by itself first: the adapter need not fit another base.
    let alone = open_model(files.clone())?;
    want.check(&alone, policy)?;
    want.verified = (policy != VerifyPolicy::Full).then_some(policy);
    if policy == VerifyPolicy::Full && want.weights_digest.is_none() {
        want.weights_digest = Some(alone.base_digest()?);
    }
    open_model_with(
        files,
        OpenOptions {
            adapter: Some(sources),
            apart: true,
            ..OpenOptions::default()
        },
    )
}

/// An opened checkpoint ([example](crate::checkpoint)).
pub struct Checkpoint {
    manifest: Manifest,
    bundle: Rc<Bundle>,
    weights: Vec<Tensor>,
    optimizer: Vec<Tensor>,
}

impl Checkpoint {
    /// Opens the files of one checkpoint and verifies each byte; an adapter's checkpoint needs the files of its `base`, which it lacks.
    ///
    /// # Errors
    /// `checkpoint.*`; among them `checkpoint.base.missing` without the base, and `checkpoint.base.mismatch` for another one.
    pub fn open(
        files: Vec<Rc<dyn ByteSource>>,
        base: Option<Vec<Rc<dyn ByteSource>>>,
    ) -> Result<Self> {
        let base = base.map_or(CheckpointBase::Absent, |files| {
            CheckpointBase::Files(files, VerifyPolicy::Full)
        });
        Self::open_with(files, base, false)
    }

    /// Opens the files of one checkpoint with the `base` that an adapter's needs. Each byte of the checkpoint is
    /// verified, unless the caller has `verified` them: then only lengths are checked.
    ///
    /// # Errors
    /// The errors of [`Checkpoint::open`].
    #[doc(hidden)]
    pub fn open_with(
        files: Vec<Rc<dyn ByteSource>>,
        base: CheckpointBase,
        verified: bool,
    ) -> Result<Self> {
        let mut by_name: BTreeMap<String, Rc<dyn ByteSource>> = files
            .into_iter()
            .map(|file| (file.name().to_string(), file))
            .collect();
        let manifest = by_name.remove(MANIFEST).ok_or_else(|| {
            corrupt(MANIFEST, "the file is absent: the checkpoint is incomplete, or these are the files of a model alone")
        })?;
        let mut manifest = manifest::read(manifest.as_ref())?;
        let mut sources = Vec::new();
        for record in &manifest.files {
            let source = by_name
                .remove(&record.name)
                .ok_or_else(|| corrupt(&record.name, "the file is absent"))?;
            pieces::check_length(source.as_ref(), record)?;
            if !verified {
                pieces::check_bytes(source.as_ref(), record)?;
            }
            sources.push(source);
        }
        let named = |name: &str| {
            let file = sources.iter().find(|file| file.name() == name);
            file.cloned()
                .ok_or_else(|| corrupt(name, "the manifest does not name it"))
        };
        let optimizer = named(OPTIMIZER_FILE)?;
        let weights = named(manifest.weights_file())?;
        sources.retain(|file| file.name() != OPTIMIZER_FILE);
        let bundle = if manifest.train.adapter.is_some() {
            open_base(&mut manifest, sources, base)?
        } else {
            open_model(sources)?
        };
        let checkpoint = Self {
            manifest,
            bundle: Rc::new(bundle),
            weights: open_tensors(&weights)?,
            optimizer: open_tensors(&optimizer)?,
        };
        consistency::check_tensors(&checkpoint.manifest.tensors, &checkpoint.found())?;
        consistency::check_groups_of(&checkpoint)?;
        Ok(checkpoint)
    }

    /// The contents of `checkpoint.json`.
    #[doc(hidden)]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Weights, configuration and tokenizer.
    pub fn bundle(&self) -> &Bundle {
        &self.bundle
    }

    /// The same, shared.
    #[doc(hidden)]
    pub fn shared_bundle(&self) -> Rc<Bundle> {
        Rc::clone(&self.bundle)
    }

    /// The warning that the run continues in another environment, if that may give other bits.
    #[doc(hidden)]
    pub fn other_environment(&self, now: &Environment) -> Option<Notice> {
        let changes = self.manifest.environment.differs(now)?;
        Some(Notice::filled(
            word!("checkpoint.environment"),
            ["", "", &changes],
        ))
    }

    /// Resumes the run for its next step. `config` may change settings that only shape the rest of the schedule, and the keys that `overrides`
    /// names (`optimizer.weight_decay`, all below `optimizer`, or `all`). Other data must be allowed by `data` in `overrides`: their order then
    /// begins again. The kinds of optimizer, precision, seed, sequence length and share kept for evaluation cannot be overridden, because the
    /// saved state and the data order depend on them. Saved groups that are not those of the saved settings must be allowed by `groups`: then
    /// the settings count. A new learning rate, or one that `overrides` names, ends a rate set by hand. State of parameters that are frozen or
    /// at rest is left out. [`Trainer::notices`] reports such consequences. Fewer steps than the run has made become those that it has made.
    ///
    /// # Errors
    /// `optim.resume-mismatch` with the full list of differences that are not allowed; `optim.state-mismatch` for state that does not fit.
    pub async fn resume(
        &self,
        dataset: Dataset,
        config: Option<TrainConfig>,
        overrides: &[String],
        device: &Device,
        interrupt: &Interrupt,
    ) -> Result<Trainer> {
        let saved = &self.manifest.train;
        let digest = dataset.digest();
        let other_data = digest != self.manifest.data_digest;
        let data_fault = |found: &str| {
            let rule = format!(
                "the data of the checkpoint, SHA-256 {}",
                self.manifest.data_digest
            );
            Fault::new(settings::DATA, rule, found)
        };
        let mut other = Vec::new();
        if other_data && !overrides.iter().any(|name| name == settings::DATA) {
            let found = format!("{digest} {}", dataset.as_read());
            other.push(data_fault(found.trim_end()));
        }
        if !settings::takes_groups(overrides) {
            other.extend(consistency::groups_fault(&self.manifest)?);
        }
        let mut notices = Vec::new();
        let given = config.unwrap_or_else(|| saved.clone());
        let (given, overrides) = self.with_steps_of(&dataset, given, overrides, &mut notices)?;
        let overrides = overrides.as_ref();
        let mut config = settings::accept(saved, given, overrides, other)?;
        let done = self.manifest.progress.completed_steps;
        if config.steps <= done {
            if other_data {
                let found = "other data, and no step left to make on them: ask for more steps";
                return Err(Error::InvalidConfig(vec![data_fault(found)]));
            }
            notices.push(nothing_left(saved, &config, done));
            config = TrainConfig {
                steps: done,
                ..saved.clone()
            };
        }
        if dataset.validation_tokens() > 0 && !other_data {
            notices.extend(consistency::other_validation(&self.manifest, &dataset));
        }
        let loader = if other_data {
            self.loader_of(digest, &mut notices)
        } else {
            self.manifest.loader.clone()
        };
        let model = Model::for_run(&self.bundle, &config, device, interrupt).await?;
        let mut progress = self.manifest.progress;
        if other_data && done > 0 {
            progress.steps_on_other_data = Some(done);
        }
        if settings::changed(saved, &config)? && done > 0 {
            progress.steps_on_other_settings = Some(done);
        }
        if settings::sets_rate(saved, &config, overrides) {
            progress.manual_learning_rate = None;
        }
        progress.schedule_start =
            schedule::resolve_start(&config.schedule, progress.schedule_start, done);
        notices.extend(jump_of_rate(&self.manifest, &config, progress)?);
        let with_state = self.with_state(settings::takes_groups(overrides));
        let mut trainer = Trainer::resume(model, dataset, loader, config, progress)?;
        let dropped = trainer
            .optim_mut()
            .load_state(saved_state(&self.optimizer), &with_state, device, interrupt)
            .await?;
        notices.extend(Notice::of_dropped(&dropped));
        trainer.add_notices(notices);
        Ok(trainer)
    }

    /// The parameters whose state was saved: by the groups, or by the files if the groups are not used.
    fn with_state(&self, other_groups: bool) -> Vec<String> {
        if other_groups {
            return self.stated_parameters();
        }
        let groups = self.manifest.groups.iter();
        groups
            .flat_map(|group| &group.members)
            .filter(|member| !member.state.is_empty())
            .map(|member| member.parameter.clone())
            .collect()
    }
}

/// The notice that the run has made all of its steps; other settings than their number have no effect then.
fn nothing_left(saved: &TrainConfig, given: &TrainConfig, done: u64) -> Notice {
    let same_steps = TrainConfig {
        steps: saved.steps,
        ..given.clone()
    };
    let kept = if same_steps == *saved {
        ""
    } else {
        "its settings stay as they are"
    };
    Notice::filled(
        word!("run.nothing-left"),
        [kept, &given.steps.to_string(), &done.to_string()],
    )
}
