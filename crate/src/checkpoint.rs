//! Converts everything the next step depends on to files and back: `model.safetensors`, `optimizer.safetensors`, the model's documents, and
//! last `checkpoint.json`, which states the SHA-256 of each piece of the others. A checkpoint folder is also a Hugging Face folder.

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
use crate::state::{Tensor, VerifyPolicy};
use crate::train::{Notice, Trainer};
use jump::jump_of_rate;
use state::{open_tensors, saved_state};

const WEIGHTS: &str = "model.safetensors";
const OPTIMIZER: &str = "optimizer.safetensors";

fn corrupt(what: &str, reason: impl std::fmt::Display) -> Error {
    Error::CheckpointCorrupt {
        what: what.to_string(),
        reason: reason.to_string(),
    }
}

/// Base of an adapter's checkpoint.
enum GivenBase {
    /// These files, compared to the extent of the policy.
    Files(Vec<Rc<dyn ByteSource>>, VerifyPolicy),
    /// No base is given, which is refused.
    Absent,
    /// No base is given, because none of it is needed.
    Unneeded,
}

impl GivenBase {
    fn of(base: Option<Vec<Rc<dyn ByteSource>>>) -> Self {
        base.map_or(Self::Absent, |files| Self::Files(files, VerifyPolicy::Full))
    }
}

/// Opens the base of an adapter's checkpoint and attaches the adapter in the checkpoint's files.
fn open_base(
    manifest: &mut Manifest,
    sources: Vec<Rc<dyn ByteSource>>,
    base: GivenBase,
) -> Result<Bundle> {
    let adapter = sources
        .into_iter()
        .filter(|file| [ADAPTER_CONFIG, ADAPTER_WEIGHTS].contains(&file.name()))
        .collect();
    let want = manifest
        .base
        .as_mut()
        .ok_or_else(|| corrupt("base", "an adapter's checkpoint names its base"))?;
    let (files, policy) = match base {
        GivenBase::Files(files, policy) => (files, policy),
        GivenBase::Unneeded => return Bundle::of_adapter(manifest.model.clone(), adapter),
        GivenBase::Absent => {
            let names: Vec<&str> = want.files.iter().map(|file| file.name.as_str()).collect();
            let refusal = Refusal::new(word!("checkpoint.base.missing"))
                .stage("bind")
                .of(MANIFEST)
                .subject(&want.name);
            return Err(refusal
                .expected(names.join(", "))
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
            adapter: Some(adapter),
            apart: true,
            ..OpenOptions::default()
        },
    )
}

/// An opened checkpoint.
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
        Self::opened(files, GivenBase::of(base), true)
    }

    /// Opens files whose bytes the caller has verified: only lengths are checked, and the base in full. Errors are those of [`Self::open`].
    #[doc(hidden)]
    pub fn open_verified(
        files: Vec<Rc<dyn ByteSource>>,
        base: Option<Vec<Rc<dyn ByteSource>>>,
    ) -> Result<Self> {
        Self::opened(files, GivenBase::of(base), false)
    }

    /// Opens the files of an adapter's checkpoint with its base, which is compared to the extent of the policy; a later checkpoint states a
    /// partial comparison. Each byte of the checkpoint is verified, unless the caller has `verified` them.
    ///
    /// # Errors
    /// The errors of [`Checkpoint::open`].
    #[doc(hidden)]
    pub fn open_beside(
        files: Vec<Rc<dyn ByteSource>>,
        base: Vec<Rc<dyn ByteSource>>,
        policy: VerifyPolicy,
        verified: bool,
    ) -> Result<Self> {
        Self::opened(files, GivenBase::Files(base, policy), !verified)
    }

    /// Opens a checkpoint for an export, an adapter's without its base: it cannot be resumed. All bytes are compared unless `verified`.
    ///
    /// # Errors
    /// `checkpoint.*`.
    #[doc(hidden)]
    pub fn open_alone(files: Vec<Rc<dyn ByteSource>>, verified: bool) -> Result<Self> {
        Self::opened(files, GivenBase::Unneeded, !verified)
    }

    fn opened(files: Vec<Rc<dyn ByteSource>>, base: GivenBase, verify: bool) -> Result<Self> {
        let mut by_name: BTreeMap<String, Rc<dyn ByteSource>> = files
            .into_iter()
            .map(|file| (file.name().to_string(), file))
            .collect();
        let manifest = by_name.remove(MANIFEST).ok_or_else(|| {
            corrupt(MANIFEST, "the file is absent: the checkpoint is incomplete, or these are the files of a model alone")
        })?;
        let mut manifest = manifest::read(manifest.as_ref())?;
        let own = if manifest.train.adapter.is_some() {
            ADAPTER_WEIGHTS
        } else {
            WEIGHTS
        };
        let mut sources = Vec::new();
        let (mut weights, mut optimizer) = (None, None);
        for record in &manifest.files {
            let source = by_name
                .remove(&record.name)
                .ok_or_else(|| corrupt(&record.name, "the file is absent"))?;
            pieces::check_length(source.as_ref(), record)?;
            if verify {
                pieces::check_bytes(source.as_ref(), record)?;
            }
            match record.name.as_str() {
                OPTIMIZER => optimizer = Some(source),
                name => {
                    sources.push(Rc::clone(&source));
                    weights = if name == own { Some(source) } else { weights };
                }
            }
        }
        let named = |file: Option<_>, name| {
            file.ok_or_else(|| corrupt(name, "the manifest does not name it"))
        };
        let (optimizer, weights) = (named(optimizer, OPTIMIZER)?, named(weights, own)?);
        let bundle = if manifest.train.adapter.is_some() {
            open_base(&mut manifest, sources, base)?
        } else {
            open_model(sources)?
        };
        let (weights, optimizer) = (open_tensors(&weights)?, open_tensors(&optimizer)?);
        let checkpoint = Self {
            manifest,
            bundle: Rc::new(bundle),
            weights,
            optimizer,
        };
        consistency::check_tensors(&checkpoint.manifest.tensors, &checkpoint.found())?;
        consistency::check_groups_of(&checkpoint)?;
        Ok(checkpoint)
    }

    /// Returns the contents of `checkpoint.json`.
    #[doc(hidden)]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns weights, configuration and tokenizer.
    pub fn bundle(&self) -> &Bundle {
        &self.bundle
    }

    /// Returns the same, shared.
    #[doc(hidden)]
    pub fn shared_bundle(&self) -> Rc<Bundle> {
        Rc::clone(&self.bundle)
    }

    /// Returns the warning that the run continues in another environment, if that may give other bits.
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
        let (digest, named) = (
            dataset.digest(),
            overrides.iter().any(|name| name == settings::DATA),
        );
        let other_data = digest != self.manifest.data_digest;
        let rule = || {
            format!(
                "the data of the checkpoint, SHA-256 {}",
                self.manifest.data_digest
            )
        };
        let found = || [digest.clone(), dataset.as_read()].join(" ");
        let unnamed =
            (other_data && !named).then(|| Fault::new(settings::DATA, rule(), found().trim_end()));
        let other_groups = if settings::takes_groups(overrides) {
            None
        } else {
            consistency::groups_fault(&self.manifest)?
        };
        let other = unnamed.into_iter().chain(other_groups).collect();
        let mut notices = Vec::new();
        let given = config.unwrap_or_else(|| saved.clone());
        let (given, overrides) = self.with_steps_of(&dataset, given, overrides, &mut notices)?;
        let overrides = overrides.as_ref();
        let mut config = settings::accept(saved, given, overrides, other)?;
        let done = self.manifest.progress.completed_steps;
        if config.steps <= done {
            if other_data {
                let found = "other data, and no step left to make on them: ask for more steps";
                return Err(Error::InvalidConfig(vec![Fault::new(
                    settings::DATA,
                    rule(),
                    found,
                )]));
            }
            let other = TrainConfig {
                steps: saved.steps,
                ..config.clone()
            } != *saved;
            let kept = if other {
                "its settings stay as they are"
            } else {
                ""
            };
            notices.push(Notice::filled(
                word!("run.nothing-left"),
                [kept, &config.steps.to_string(), &done.to_string()],
            ));
            config = TrainConfig {
                steps: done,
                ..saved.clone()
            };
        }
        let evaluates = dataset.validation_tokens() > 0;
        notices.extend(
            consistency::other_validation(&self.manifest, &dataset)
                .filter(|_| evaluates && !other_data),
        );
        let loader = if other_data {
            self.loader_of(digest, &mut notices)
        } else {
            self.manifest.loader.clone()
        };
        let model = Model::for_run(&self.bundle, &config, device, interrupt).await?;
        let mut progress = self.manifest.progress;
        if other_data && progress.completed_steps > 0 {
            progress.steps_on_other_data = Some(progress.completed_steps);
        }
        if settings::changed(saved, &config)? && progress.completed_steps > 0 {
            progress.steps_on_other_settings = Some(progress.completed_steps);
        }
        if settings::sets_rate(saved, &config, overrides) {
            progress.manual_learning_rate = None;
        }
        progress.schedule_start = schedule::resolve_start(
            &config.schedule,
            progress.schedule_start,
            progress.completed_steps,
        );
        notices.extend(jump_of_rate(&self.manifest, &config, progress)?);
        let with_state = self.with_state(settings::takes_groups(overrides));
        let mut trainer = Trainer::resume(model, dataset, loader, config, progress)?;
        let dropped = trainer
            .optim_mut()
            .load_state(saved_state(&self.optimizer), &with_state, device, interrupt)
            .await?;
        if !dropped.is_empty() {
            let names = dropped.join(", ");
            notices.push(Notice {
                subject: Some(names.clone()),
                ..Notice::filled(word!("optim.state-dropped"), [&names, "", ""])
            });
        }
        trainer.add_notices(notices);
        Ok(trainer)
    }

    /// Returns the parameters whose state was saved: by the groups, or by the files if the groups are not used.
    fn with_state(&self, other_groups: bool) -> Vec<String> {
        if other_groups {
            return self.stated_parameters();
        }
        let members = self
            .manifest
            .groups
            .iter()
            .flat_map(|group| &group.members)
            .filter(|member| !member.state.is_empty());
        members.map(|member| member.parameter.clone()).collect()
    }
}
