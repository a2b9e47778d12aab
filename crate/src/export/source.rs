//! The source of an export: weights on the device or in files, and all known facts about them.

use std::rc::Rc;

use crate::bundle::{Bundle, ModelAssets};
use crate::config::{AdapterConfig, ModelConfig, TrainConfig};
use crate::error::{Error, Result, Warning};
use crate::formats::{ByteSource, Digest};
use crate::model::Model;
use crate::state::{
    Base, CheckResult, DataRecord, Evaluation, EvaluationRecord, Identity, LossRecord,
    ModelIoArtifactReceipt, ModelStateGroupAssignment, Operation, ReceiptCheck, ReceiptFile,
    ReceiptGroups, ReceiptTensors, ReceiptWarning, SelectionReport, Tensor, TrainingRecord,
    group_ids,
};
use crate::train::{Progress, Trainer};

/// The weights of a model, each tensor a handle: nothing is read before it is written ([example](crate)).
#[derive(Debug, Clone)]
pub struct Weights {
    /// Shape of the model.
    #[doc(hidden)]
    pub config: ModelConfig,
    /// Every parameter except a tied head.
    #[doc(hidden)]
    pub tensors: Vec<Tensor>,
}

impl Weights {
    /// The weights of a model on the device, in their present state.
    pub fn of_model(model: &Model) -> Self {
        Self {
            config: model.config().clone(),
            tensors: model.stream_tensors(),
        }
    }

    /// The weights of an opened model, in its files.
    ///
    /// # Errors
    /// `model.tensor.missing` for an absent tensor.
    pub fn of_bundle(bundle: &Bundle) -> Result<Self> {
        Self::of_names(bundle, bundle.names())
    }

    /// The weights with these names of an opened model, or of the adapter attached to it.
    pub(crate) fn of_names(bundle: &Bundle, names: Vec<String>) -> Result<Self> {
        let one = |name: &String| bundle.need_tensor(name).cloned();
        let tensors = names.iter().map(one).collect::<Result<_>>()?;
        Ok(Self {
            config: bundle.config.clone(),
            tensors,
        })
    }
}

/// A model to be exported ([example](crate)).
#[derive(Debug, Clone)]
pub struct ExportSource {
    /// Weights of the model.
    #[doc(hidden)]
    pub weights: Weights,
    /// Documents and tokenizer of the model.
    #[doc(hidden)]
    pub assets: ModelAssets,
    /// Weight files that it started from.
    #[doc(hidden)]
    pub base: Option<Base>,
    /// Files of the adapter that was merged into it.
    #[doc(hidden)]
    pub adapter: Vec<ReceiptFile>,
    /// Files of the model that an adapter was merged into when it was opened; empty for any other model.
    #[doc(hidden)]
    pub merged_files: Vec<Rc<dyn ByteSource>>,
    /// Record of its training, if it was trained.
    #[doc(hidden)]
    pub training: Option<TrainingRecord>,
    /// Model and checkpoint that the state belongs to.
    #[doc(hidden)]
    pub identity: Identity,
    /// Groups of parameters of a run.
    #[doc(hidden)]
    pub groups: Vec<ModelStateGroupAssignment>,
    /// State tensors of a run's optimizer.
    #[doc(hidden)]
    pub state: Vec<Tensor>,
    /// True if hashing the base also gives the digest of its weights.
    #[doc(hidden)]
    pub whole: bool,
    /// Warnings collected so far.
    #[doc(hidden)]
    pub warnings: Vec<Warning>,
    /// Tensors that a request took and left of the files that it was opened from.
    #[doc(hidden)]
    pub selection: SelectionReport,
    /// Settings of the adapter that the weights are, if a run trains one.
    #[doc(hidden)]
    pub adapter_settings: Option<AdapterConfig>,
    /// Operation whose result is exported, and the files that it was made from; `None` for those of the base.
    #[doc(hidden)]
    pub made_by: Option<(Operation, Vec<ReceiptFile>)>,
}

impl ExportSource {
    /// Creates a source from weights and their documents, without any other facts.
    pub fn of_weights(weights: Weights, assets: ModelAssets) -> Self {
        Self {
            weights,
            assets,
            base: None,
            adapter: Vec::new(),
            merged_files: Vec::new(),
            training: None,
            identity: Identity::default(),
            groups: Vec::new(),
            state: Vec::new(),
            whole: false,
            warnings: Vec::new(),
            selection: SelectionReport::default(),
            adapter_settings: None,
            made_by: None,
        }
    }

    /// Creates the source of an opened model that is converted without a device. Its files have the digests of their headers.
    ///
    /// # Errors
    /// `model.tensor.missing` for an absent tensor.
    pub fn of_bundle(bundle: &Bundle) -> Result<Self> {
        let identity = Identity {
            checkpoint_family: "tabtune.export".into(),
            ..Identity::of_family(&bundle.config.model_type)
        };
        Ok(Self {
            base: Some(bundle.base.clone()),
            adapter: bundle.adapter_files(false)?,
            merged_files: bundle.merged_files().to_vec(),
            identity,
            whole: bundle.is_whole(),
            warnings: bundle.warnings.clone(),
            selection: bundle.selection.clone(),
            ..Self::of_weights(Weights::of_bundle(bundle)?, ModelAssets::of_bundle(bundle))
        })
    }

    /// Adds the digests of all bytes of its base, as hubs show them, for its receipt: the files are read once.
    ///
    /// # Errors
    /// Errors of reading.
    #[doc(hidden)]
    pub fn summed(mut self, bundle: &Bundle) -> Result<Self> {
        self.base = self.base.map(|base| base.hashed(bundle)).transpose()?;
        self.adapter = bundle.adapter_files(true)?;
        Ok(self)
    }

    /// The source with placeholders for the digests that an export will have, before anything is read: a conversion hashes its files
    /// ([`Self::summed`]), so each gets some digest, and receipts have their final size.
    pub(super) fn planned(&self) -> Self {
        let mut planned = self.clone();
        if planned.training.is_some() {
            return planned;
        }
        let some = |sum: &mut Option<Digest>| {
            sum.get_or_insert_with(|| Digest::of(&[]));
        };
        if let Some(base) = &mut planned.base {
            let files = base.files.iter_mut();
            files.for_each(|file| some(&mut file.sha256));
            if self.whole {
                some(&mut base.weights_digest);
            }
        }
        let adapter = planned.adapter.iter_mut();
        adapter.for_each(|file| some(&mut file.sha256));
        planned
    }

    /// Creates the source of a run in its present state, with the state of its optimizer. `data_name` is the user's name of the data.
    ///
    /// # Errors
    /// `config.invalid` for settings that are no JSON.
    pub fn of_trainer(
        trainer: &Trainer,
        assets: ModelAssets,
        base: Option<Base>,
        data_name: &str,
    ) -> Result<Self> {
        let (model, progress) = (trainer.model(), trainer.progress());
        let tokens = Some(trainer.dataset().train_tokens() as u64);
        let training = training_record(
            trainer.config(),
            progress,
            &trainer.dataset().digest(),
            data_name,
            tokens,
        )?;
        Ok(Self {
            base,
            training: Some(training),
            identity: Identity::of_run(&model.config().model_type, progress.completed_steps),
            groups: trainer.groups(),
            state: trainer.state_stream(),
            warnings: assets.warnings.clone(),
            adapter_settings: trainer.config().adapter.clone(),
            ..Self::of_weights(Weights::of_model(model), assets)
        })
    }

    /// The receipt of an export as it is before anything is written.
    #[doc(hidden)]
    pub fn draft(&self) -> ModelIoArtifactReceipt {
        let mut admitted: Vec<String> = self
            .weights
            .tensors
            .iter()
            .map(|tensor| tensor.name.clone())
            .collect();
        admitted.sort_unstable();
        let mut draft = ModelIoArtifactReceipt {
            base: self.base.clone(),
            training: self.training.clone(),
            tensors: ReceiptTensors {
                admitted,
                dropped: self.selection.dropped.clone(),
                renamed: self.selection.renamed.clone(),
                ..ReceiptTensors::default()
            },
            groups: ReceiptGroups {
                admitted: group_ids(&self.groups),
                dropped: Vec::new(),
            },
            warnings: self.warnings.iter().map(ReceiptWarning::from).collect(),
            ..ModelIoArtifactReceipt::new(match &self.training {
                Some(_) => Operation::Export,
                None if self.adapter.is_empty() => Operation::Convert,
                None => Operation::Merge,
            })
        };
        if let Some((operation, inputs)) = &self.made_by {
            draft.operation = *operation;
            draft.inputs.clone_from(inputs);
            return draft;
        }
        let of_base = self.base.as_ref().map(Base::receipt_files);
        let of_base = of_base.unwrap_or_default();
        for (name, files) in [("base", &of_base), ("adapter", &self.adapter)] {
            if files.iter().any(|file| file.sha256.is_none()) {
                draft.checks.push(ReceiptCheck {
                    name: name.into(),
                    result: CheckResult::Skipped,
                });
            }
        }
        draft.inputs = [&of_base[..], &self.adapter].concat();
        draft
    }
}

/// Creates a receipt's record of a run: its settings as a document, the seed as hex, because not every reader of JSON reads 64 bits.
///
/// # Errors
/// `config.invalid` for settings that are no JSON, or a `data_digest` that is no SHA-256 in lower-case hex.
pub(crate) fn training_record(
    config: &TrainConfig,
    progress: Progress,
    data_digest: &str,
    data_name: &str,
    data_tokens: Option<u64>,
) -> Result<TrainingRecord> {
    let wrong = |error: serde_json::Error| Error::invalid("settings", "JSON", error);
    let no_digest = || Error::invalid("data_digest", "a SHA-256 in lower-case hex", data_digest);
    let mut settings = serde_json::to_value(config).map_err(wrong)?;
    if let Some(seed) = settings.get_mut("seed") {
        *seed = format!("0x{:016x}", config.seed).into();
    }
    let digest = Digest::from_hex(data_digest).ok_or_else(no_digest)?;
    // If none of the data is kept back, other data were evaluated.
    let of_data =
        |found: &Evaluation| config.validation_fraction == 0.0 || found.data_digest == digest;
    let of_these = |found: &Evaluation| found.step == progress.completed_steps && of_data(found);
    // An evaluation of other weights or other data is left out.
    let evaluation = progress.evaluation.filter(of_these);
    Ok(TrainingRecord {
        settings,
        data: DataRecord {
            name: data_name.to_string(),
            digest,
            tokens: data_tokens,
            steps_before: progress.steps_on_other_data,
        },
        steps_before: progress.steps_on_other_settings,
        completed_steps: progress.completed_steps,
        tokens: progress.tokens,
        losses: LossRecord {
            last: progress.last_loss,
            evaluation: evaluation.map(EvaluationRecord::Of),
            evaluation_before: None,
        },
    })
}
