//! A state that a run continues from, as the terminal and the page open it.

use std::rc::Rc;

use burn::tensor::Device;
use serde_json::{Map, Value};

use super::imports::{SharedFiles, open_state};
use crate::bundle::Bundle;
use crate::checkpoint::{accept_settings, takes_groups};
use crate::config::TrainConfig;
use crate::data::Dataset;
use crate::error::{Error, Result, Warning, both, word};
use crate::formats::{ByteSource, base_name, read_document};
use crate::interrupt::Interrupt;
use crate::state::{
    ModelIoArtifactReceipt, ModelStateGroupAssignment, NamePolicy, PortableModelImportRequest,
    PortableModelStateDict, RECEIPT, Residency, TrainingRecord,
};
use crate::train::{Notice, Trainer};

/// Maximum size of a receipt.
const MAX_RECEIPT_BYTES: u64 = 64 << 20;
/// Settings that the order of the data depends on.
const ORDER: [&str; 11] = [
    "batch_size",
    "data_order",
    "data_weights",
    "epochs",
    "gradient_accumulation_steps",
    "on_long",
    "packing",
    "seed",
    "seq_len",
    "validation_fraction",
    "validation_rows",
];

/// A state that a run continues from, with the record of the training that it comes from.
#[derive(Debug, Clone)]
pub struct RunState {
    /// Weights, groups, optimizer state. Without groups the weights alone count, and the optimizer begins without state.
    pub state_dict: PortableModelStateDict,
    /// Record of the training, if a receipt or a checkpoint is among the files.
    pub training: Option<TrainingRecord>,
    /// Unusual but allowed properties.
    pub warnings: Vec<Warning>,
}

impl RunState {
    /// Opens the state in `files`, in any form that [`open_state`] reads, and compares it with the digests that it states. Weights that a state
    /// of an optimizer alone lacks are those of `model`.
    ///
    /// # Errors
    /// The errors of [`open_state`] and of an import; `receipt.invalid` for a broken receipt.
    pub async fn open(files: &SharedFiles, model: Option<&Bundle>) -> Result<Self> {
        let is_receipt = |file: &Rc<dyn ByteSource>| {
            let name = base_name(file.name());
            name == RECEIPT || name.ends_with(".receipt.json")
        };
        let (receipts, files): (SharedFiles, SharedFiles) =
            files.iter().cloned().partition(is_receipt);
        let mut opened = open_state(&files, NamePolicy::Hf)?;
        let tensors = &mut opened.state.tensors;
        if tensors.values().all(|tensor| tensor.is_state()) {
            let weights = model.into_iter().flat_map(Bundle::tensors);
            tensors.extend(weights.map(|own| (own.name.clone(), Box::new(own.clone()))));
        }
        let mut training = opened.metadata.training.clone();
        if let (Some(receipt), None) = (receipts.first(), &training) {
            training = read_receipt(receipt)?.training;
        }
        let imported = opened
            .import(&PortableModelImportRequest::default())
            .await?;
        Ok(Self {
            state_dict: imported.bundle.state_dict,
            training,
            warnings: imported.warnings,
        })
    }

    /// Number of steps that the state has made.
    pub fn completed_steps(&self) -> u64 {
        self.state_dict.applied_steps()
    }

    /// The settings of the run: `settings` with optimizers, groups, rate and schedule of the state, and with the adapter of its record. `given`
    /// are the keys that the user set: those that contradict the state must be named in `overrides`. With `groups` in `overrides`, the groups
    /// of the settings count. `bundle` is the model of the run.
    ///
    /// # Errors
    /// `optim.resume-mismatch` with every contradiction; the errors of [`PortableModelStateDict::to_training_groups`] for groups that tabtune
    /// does not train, together with those of [`RunState::resume`] for tensors that are not the model's.
    pub fn settings(
        &self,
        bundle: &Bundle,
        settings: &TrainConfig,
        given: &Map<String, Value>,
        overrides: &[String],
    ) -> Result<TrainConfig> {
        let settings = self.with_adapter(settings)?;
        if self.state_dict.groups().is_empty() || takes_groups(overrides) {
            return Ok(settings);
        }
        let (saved, ()) = both(
            self.state_dict.train_config(&settings),
            self.state_dict.check_for(bundle, &settings, true),
        )?;
        let asked = saved.overlaid(Value::Object(given.clone()))?;
        accept_settings(&saved, asked, overrides)
    }

    /// The settings with the adapter that the state's factors were trained with, if its record names one and the settings do not.
    fn with_adapter(&self, settings: &TrainConfig) -> Result<TrainConfig> {
        let recorded = self
            .training
            .as_ref()
            .map(|record| &record.settings["adapter"]);
        match recorded.filter(|adapter| adapter.is_object() && settings.adapter.is_none()) {
            Some(adapter) => settings.overlaid(serde_json::json!({ "adapter": adapter })),
            None => Ok(settings.clone()),
        }
    }

    /// Creates the run of `bundle` that continues this state, with the settings of [`RunState::settings`]. The weights of the state replace those
    /// of the model. The data go on after the steps that were made, if the record says that they are the same and read in the same order;
    /// otherwise they begin, with a notice.
    ///
    /// # Errors
    /// All that does not fit, at once: `model.tensor.unexpected`, `model.tensor.shape`, `state.group.member-missing` for a trained parameter without a
    /// group, `state.group.kind`, `state.tensor.quantised`; `optim.state-mismatch`; `config.invalid` if no step is left.
    pub async fn resume(
        &self,
        bundle: &Bundle,
        config: TrainConfig,
        overrides: &[String],
        dataset: Dataset,
        device: &Device,
        interrupt: &Interrupt,
    ) -> Result<Trainer> {
        let state = &self.state_dict;
        let done = state.applied_steps();
        if config.steps <= done {
            let rule = format!("more than {done}, the steps that the state has made");
            return Err(Error::invalid("steps", rule, config.steps));
        }
        let fixed_groups = !takes_groups(overrides);
        let mut notices: Vec<Notice> = self.warnings.iter().map(notice).collect();
        if state.groups().is_empty() {
            notices.push(Notice::filled(word!("state.weights-alone"), ["", "", ""]));
        }
        if fixed_groups {
            notices.extend(elsewhere(state.groups()));
        }
        let follows = done > 0 && self.has_order_of(&config, &dataset)?;
        if done > 0 {
            let how = match follows {
                true => "go on after them",
                false => "are read from their beginning",
            };
            let texts = ["", &done.to_string(), how];
            notices.push(Notice::filled(word!("state.data"), texts));
        }
        let mut run = state
            .run(bundle, config, fixed_groups, dataset, device, interrupt)
            .await?;
        // A run with gradient release skips no step of its own, but those made before.
        run.trainer.skip_made(if follows { done } else { 0 })?;
        run.trainer.add_notices(notices);
        Ok(run.trainer)
    }

    /// True if the record says that the steps were made with these data in this order.
    fn has_order_of(&self, config: &TrainConfig, dataset: &Dataset) -> Result<bool> {
        let Some(record) = &self.training else {
            return Ok(false);
        };
        let data = &record.data;
        if data.digest.to_string() != dataset.digest() || data.steps_before.is_some() {
            return Ok(false);
        }
        let mut own = serde_json::to_value(config)
            .map_err(|error| Error::invalid("settings", "JSON", error))?;
        own["seed"] = format!("0x{:016x}", config.seed).into();
        Ok(ORDER.iter().all(|key| own[key] == record.settings[key]))
    }
}

/// The notice that these groups want state to be off the device, where a run has all of it.
fn elsewhere(groups: &[ModelStateGroupAssignment]) -> Option<Notice> {
    let is_elsewhere = |group: &&ModelStateGroupAssignment| {
        let policy = group.residency_policy;
        let policy = policy.into_iter().flat_map(|two| [two.step, two.idle]);
        let mut all = policy.chain(group.residency);
        all.any(|place| place != Residency::Device)
    };
    let ids: Vec<String> = groups
        .iter()
        .filter(is_elsewhere)
        .map(|group| format!("\"{}\"", group.group_id))
        .collect();
    let subject = ids.join(", ");
    (!ids.is_empty()).then(|| Notice {
        subject: Some(subject.clone()),
        ..Notice::filled(word!("state.residency"), [&subject, "", ""])
    })
}

fn notice(warning: &Warning) -> Notice {
    Notice {
        code: warning.code,
        subject: Some(warning.subject.clone()),
        message: warning.message(),
    }
}

fn read_receipt(file: &Rc<dyn ByteSource>) -> Result<ModelIoArtifactReceipt> {
    let bytes = read_document(file.as_ref(), MAX_RECEIPT_BYTES)?;
    ModelIoArtifactReceipt::read(&String::from_utf8_lossy(&bytes), file.name())
}
