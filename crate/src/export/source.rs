//! What is exported: weights on the device or in files, and all that is known of them.

use std::rc::Rc;

use crate::bundle::{Bundle, ModelAssets, StoredTensor, StreamTensor, StreamValues};
use crate::config::{AdapterConfig, ModelConfig, Precision, TrainConfig};
use crate::error::{Error, Fault, Result};
use crate::formats::{Digest, Warning};
use crate::model::Model;
use crate::state::{
    Base, CheckResult, DataRecord, Evaluation, EvaluationRecord, Identity, LossRecord, ModelIoArtifactReceipt, ModelStateGroupAssignment,
    Operation, ReceiptCheck, ReceiptFile, ReceiptGroups, ReceiptTensors, ReceiptWarning, SelectionReport, TrainingRecord,
};
use crate::train::{Progress, Trainer};

/// The weights of a model, each tensor a handle: nothing is read before it is written.
#[derive(Debug, Clone)]
pub struct Weights {
    /// Shape of the model.
    pub config: ModelConfig,
    /// How matrices are stored on the device; `None` for weights in files, each of which has its own dtype.
    pub precision: Option<Precision>,
    /// Every parameter, a tied head left out.
    pub tensors: Vec<StreamTensor>,
}

impl Weights {
    /// Those of a model on the device, as they are now.
    pub fn of_model(model: &Model) -> Self {
        Self { config: model.config().clone(), precision: Some(model.precision()), tensors: model.stream_tensors() }
    }

    /// Those of an opened model, in its files.
    pub fn of_bundle(bundle: &Rc<Bundle>) -> Result<Self> {
        Self::of_names(bundle, bundle.names())
    }

    /// Those of an opened model, or of the adapter beside it, that have these names.
    pub(crate) fn of_names(bundle: &Rc<Bundle>, names: Vec<String>) -> Result<Self> {
        let one = |name: String| {
            let stored = StoredTensor::new(bundle, &name)?;
            Ok(StreamTensor { shape: stored.shape().to_vec(), values: StreamValues::Stored(stored), name })
        };
        let tensors = names.into_iter().map(one).collect::<Result<_>>()?;
        Ok(Self { config: bundle.config.clone(), precision: None, tensors })
    }
}

/// A model to be exported.
#[derive(Debug, Clone)]
pub struct ExportSource {
    /// Its weights.
    pub weights: Weights,
    /// Its documents and tokenizer.
    pub assets: ModelAssets,
    /// The weight files that it started from.
    pub base: Option<Base>,
    /// The files of the adapter that was merged into it.
    pub adapter: Vec<ReceiptFile>,
    /// How it was trained, if it was.
    pub training: Option<TrainingRecord>,
    /// What it is a state of.
    pub identity: Identity,
    /// Its groups of parameters, in training.
    pub groups: Vec<ModelStateGroupAssignment>,
    /// The optimizer's state tensors, in training.
    pub state: Vec<StreamTensor>,
    /// Whether summing the base gives the digest of its weights too.
    pub whole: bool,
    /// What was unusual on the way here.
    pub warnings: Vec<Warning>,
    /// What a request took and left of the files that it was opened from.
    pub selection: SelectionReport,
    /// The settings of the adapter that the weights are, if a run trains one.
    pub adapter_settings: Option<AdapterConfig>,
    /// The operation that an export writes the result of, and the files that it was made from; `None` for those of the base.
    pub made_by: Option<(Operation, Vec<ReceiptFile>)>,
}

impl ExportSource {
    /// Weights with their documents, of which nothing else is known.
    pub fn of_weights(weights: Weights, assets: ModelAssets) -> Self {
        Self {
            weights,
            assets,
            base: None,
            adapter: Vec::new(),
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

    /// An opened model, converted without a device. Its files have the sums of their headers.
    pub fn of_bundle(bundle: &Rc<Bundle>) -> Result<Self> {
        let identity =
            Identity { model_family: bundle.config.model_type.clone(), checkpoint_family: "tabtune.export".into(), ..Identity::default() };
        Ok(Self {
            base: Some(bundle.base.clone()),
            adapter: bundle.adapter_files(false)?,
            identity,
            whole: bundle.is_whole(),
            warnings: bundle.warnings.clone(),
            selection: bundle.selection.clone(),
            ..Self::of_weights(Weights::of_bundle(bundle)?, ModelAssets::of_bundle(bundle))
        })
    }

    /// The same with the sums of all bytes of its base, as hubs show them, for its receipt: the files are read once.
    pub fn summed(mut self, bundle: &Bundle) -> Result<Self> {
        self.base = self.base.map(|base| base.hashed(bundle)).transpose()?;
        self.adapter = bundle.adapter_files(true)?;
        Ok(self)
    }

    /// The same as it will be exported, before anything is read: a conversion sums its files ([`Self::summed`]), so each has some sum, and
    /// receipts their final size.
    pub(super) fn planned(&self) -> Self {
        let mut planned = self.clone();
        if planned.training.is_none() {
            let some = |sum: &mut Option<Digest>| *sum = sum.or_else(|| Some(Digest::of(&[])));
            planned.base.iter_mut().flat_map(|base| &mut base.files).for_each(|file| some(&mut file.sha256));
            planned.base.iter_mut().filter(|_| self.whole).for_each(|base| some(&mut base.weights_digest));
            planned.adapter.iter_mut().for_each(|file| some(&mut file.sha256));
        }
        planned
    }

    /// The model of a run as it is now, with the state of its optimizer. `data_name` is what the user calls the data.
    pub fn of_trainer(trainer: &Trainer, assets: ModelAssets, base: Option<Base>, data_name: &str) -> Result<Self> {
        let (model, progress) = (trainer.model(), trainer.progress());
        let tokens = Some(trainer.dataset().train_tokens() as u64);
        let training = training_record(trainer.config(), progress, &trainer.dataset().digest(), data_name, tokens)?;
        let identity = Identity {
            model_family: model.config().model_type.clone(),
            revision: String::new(),
            checkpoint_family: "tabtune.train".into(),
            checkpoint_ref: Some(format!("step-{}", progress.completed_steps)),
        };
        Ok(Self {
            base,
            training: Some(training),
            identity,
            groups: trainer.groups(),
            state: trainer.state_stream(),
            warnings: assets.warnings.clone(),
            adapter_settings: trainer.config().adapter.clone(),
            ..Self::of_weights(Weights::of_model(model), assets)
        })
    }

    /// What the receipt of an export says before anything is written.
    pub fn draft(&self) -> ModelIoArtifactReceipt {
        let usual = match &self.training {
            Some(_) => Operation::Export,
            None if self.adapter.is_empty() => Operation::Convert,
            None => Operation::Merge,
        };
        let operation = self.made_by.as_ref().map_or(usual, |(operation, _)| *operation);
        let mut admitted: Vec<String> = self.weights.tensors.iter().map(|tensor| tensor.name.clone()).collect();
        admitted.sort_unstable();
        let files = self.base.iter().flat_map(|base| &base.files);
        let of_base = files.clone().map(|file| ReceiptFile::of_name(&file.name, file.bytes, file.sha256));
        let own = of_base.chain(self.adapter.iter().cloned());
        let skipped = |name: &str, unread: bool| {
            (unread && self.made_by.is_none()).then(|| ReceiptCheck { name: name.into(), result: CheckResult::Skipped })
        };
        let unread = [
            skipped("base", files.clone().any(|file| file.sha256.is_none())),
            skipped("adapter", self.adapter.iter().any(|file| file.sha256.is_none())),
        ];
        ModelIoArtifactReceipt {
            base: self.base.clone(),
            training: self.training.clone(),
            inputs: self.made_by.as_ref().map_or_else(|| own.collect(), |(_, inputs)| inputs.clone()),
            tensors: ReceiptTensors {
                admitted,
                dropped: self.selection.dropped.clone(),
                renamed: self.selection.renamed.clone(),
                ..ReceiptTensors::default()
            },
            groups: ReceiptGroups { admitted: self.groups.iter().map(|group| group.group_id.clone()).collect(), dropped: Vec::new() },
            checks: unread.into_iter().flatten().collect(),
            warnings: self.warnings.iter().map(ReceiptWarning::from).collect(),
            ..ModelIoArtifactReceipt::new(operation)
        }
    }
}

/// What a receipt says of a run: its settings as a document, the seed as hex, because not every reader of JSON takes 64 bits.
pub fn training_record(
    config: &TrainConfig,
    progress: Progress,
    data_digest: &str,
    data_name: &str,
    data_tokens: Option<u64>,
) -> Result<TrainingRecord> {
    let wrong = |error: serde_json::Error| Error::InvalidConfig(vec![Fault::new("settings", "JSON", error)]);
    let mut settings = serde_json::to_value(config).map_err(wrong)?;
    if let Some(seed) = settings.get_mut("seed") {
        *seed = format!("0x{:016x}", config.seed).into();
    }
    // Where nothing is kept back of the data, others were evaluated.
    let of_data = |found: &Evaluation| config.validation_fraction == 0.0 || found.data_digest.to_string() == data_digest;
    let of_these = |found: &Evaluation| found.step == progress.completed_steps && of_data(found);
    // One of other weights or other data is none of these.
    let evaluation = progress.evaluation.filter(of_these).map(EvaluationRecord::Of);
    let no_digest = || Error::InvalidConfig(vec![Fault::new("data_digest", "a SHA-256 in lower-case hex", data_digest)]);
    Ok(TrainingRecord {
        settings,
        data: DataRecord { name: data_name.to_string(), digest: Digest::from_hex(data_digest).ok_or_else(no_digest)?, tokens: data_tokens },
        completed_steps: progress.completed_steps,
        tokens: progress.tokens,
        losses: LossRecord { last: progress.last_loss, evaluation },
    })
}
