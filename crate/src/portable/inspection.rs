//! Determines from headers alone: the kind of a set of files, how the model can be trained here, and the formats that it can be exported to.

use serde::Serialize;

use super::contract::{ContractFacts, ModelIoCompatibilityContract};
use super::export_options::export_options_of;
use super::imports::{SharedFiles, open_state};
use crate::bundle::{CHECKPOINT, FilesKind, OpenOptions};
use crate::config::{ModelConfig, OptimizerConfig, Precision, TrainConfig};
use crate::error::{Error, Refusal, Result, Warning};
use crate::export::{ExportChoice, ExportSource};
use crate::formats::{ByteSource, FileTensor, base_name};
use crate::model::open_model_with;
use crate::state::{
    Base, NamePolicy, NonFinitePolicy, OPTIMIZER_FILE, PortableModelImportRequest, Tensor,
};
use crate::tokenizer::{Tokenizer, TokenizerKind};
use crate::train::{memory_plan, optimizer_record};

/// Number of tokens of the sequence for which memory is planned, unless the model's context is shorter.
const PLANNED_TOKENS: usize = 512;

/// Kind of a set of files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum InspectionKind {
    /// A model that opens, or files that claim to be one.
    Model,
    /// A LoRA adapter.
    Adapter,
    /// State of an optimizer without the weights that it belongs to.
    Optimizer,
    /// Named tensors without a model's configuration.
    State,
    /// A checkpoint of a run.
    Checkpoint,
    /// None of these.
    #[default]
    Unknown,
}

/// An update rule and a precision, with the memory of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainingOption {
    /// Public name of the update rule.
    pub optimizer: String,
    /// Storage of weight matrices and moments.
    pub precision: Precision,
    /// Peak number of bytes on the device during a step of one sequence.
    pub bytes: u64,
}

/// Verdict on training a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trainable {
    /// True if the model can be trained.
    pub ok: bool,
    /// Reason if it cannot be trained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Every update rule in both precisions.
    pub options: Vec<TrainingOption>,
}

/// Known facts about a tokenizer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TokenizerFacts {
    /// Kind of its model.
    pub kind: TokenizerKind,
    /// Ids that end a text.
    pub eos: Vec<u32>,
    /// True if it can format chats.
    pub has_chat_template: bool,
}

impl TokenizerFacts {
    /// Collects the facts of `tokenizer`.
    pub fn of(tokenizer: &Tokenizer) -> Self {
        Self {
            kind: tokenizer.kind(),
            eos: tokenizer.eos().to_vec(),
            has_chat_template: tokenizer.has_chat_template(),
        }
    }
}

/// A warning with its message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReportedWarning {
    /// Stable dotted word.
    pub code: &'static str,
    /// Tensor, key or file.
    pub subject: String,
    /// Message of the warning.
    pub message: String,
}

impl From<&Warning> for ReportedWarning {
    fn from(warning: &Warning) -> Self {
        Self {
            code: warning.code,
            subject: warning.subject.clone(),
            message: warning.message(),
        }
    }
}

/// Description of files: their kind, and their possible uses.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Inspection {
    /// Kind of the files.
    pub kind: InspectionKind,
    /// List of the tensors; those of a model have Hugging Face's names.
    pub tensors: Vec<FileTensor>,
    /// Shape of the model.
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")
    )]
    pub config: Option<ModelConfig>,
    /// Tokenizer of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<TokenizerFacts>,
    /// The weight files with their checksums.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<Base>,
    /// Contract that states what import, export and a round trip preserve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract: Option<ModelIoCompatibilityContract>,
    /// Formats that it can be exported to.
    pub exports: Vec<ExportChoice>,
    /// Verdict on training it.
    pub trainable: Trainable,
    /// All faults of the files together.
    pub refusals: Vec<Refusal>,
    /// Unusual but allowed properties of the files.
    pub warnings: Vec<ReportedWarning>,
}

/// Examines `files` together, with the tensors that a request takes and an adapter that is merged into them. No value is read except the few of
/// a GGUF file's rotary divisors, and all that are taken if the request refuses those that are NaN or infinite. Files that are refused get an inspection too.
pub fn inspection(
    files: &SharedFiles,
    request: Option<PortableModelImportRequest>,
    adapter: Option<SharedFiles>,
) -> Inspection {
    let mut inspection = Inspection {
        kind: FilesKind::of(files).into(),
        ..Inspection::default()
    };
    let judged = match inspection.kind {
        InspectionKind::Model => inspection.model(files.clone(), request, adapter),
        // A checkpoint folder is a model folder with two more files.
        InspectionKind::Checkpoint => inspection.model(without_run(files), request, adapter),
        InspectionKind::State | InspectionKind::Optimizer => {
            inspection.state(files, &request.unwrap_or_default())
        }
        InspectionKind::Adapter | InspectionKind::Unknown => Ok(()),
    };
    if let Err(error) = judged {
        inspection.trainable.reason = Some(error.to_string());
        if let Error::Refused(list) = error {
            inspection.refusals = list;
        }
    } else if !inspection.trainable.ok {
        inspection.trainable.reason =
            Some("these files are no model: give config.json and weights, or a GGUF file".into());
    }
    inspection
}

impl From<FilesKind> for InspectionKind {
    fn from(kind: FilesKind) -> Self {
        match kind {
            FilesKind::Checkpoint => Self::Checkpoint,
            FilesKind::Folder | FilesKind::Gguf => Self::Model,
            FilesKind::Adapter => Self::Adapter,
            FilesKind::Optimizer => Self::Optimizer,
            FilesKind::StateJson(_) | FilesKind::Safetensors => Self::State,
            FilesKind::Unknown => Self::Unknown,
        }
    }
}

/// The files of a checkpoint without the two that a model folder has not.
fn without_run(files: &SharedFiles) -> SharedFiles {
    let of_run =
        |file: &dyn ByteSource| [CHECKPOINT, OPTIMIZER_FILE].contains(&base_name(file.name()));
    let own = files.iter().filter(|file| !of_run(file));
    own.cloned().collect()
}

impl Inspection {
    fn model(
        &mut self,
        files: SharedFiles,
        request: Option<PortableModelImportRequest>,
        adapter: Option<SharedFiles>,
    ) -> Result<()> {
        let bundle = open_model_with(
            files,
            OpenOptions {
                adapter,
                request,
                headers_only: true,
                ..OpenOptions::default()
            },
        )?;
        let source = ExportSource::of_bundle(&bundle)?;
        self.tensors = source.weights.tensors.iter().map(listed).collect();
        self.warnings = bundle.warnings.iter().map(ReportedWarning::from).collect();
        self.tokenizer = bundle.tokenizer.as_ref().map(TokenizerFacts::of);
        self.base = Some(bundle.base);
        self.trainable = trainable(&bundle.config)?;
        let (exports, contract) = export_options_of(&source)?;
        (self.exports, self.contract) = (exports, Some(contract));
        self.config = Some(bundle.config);
        Ok(())
    }

    /// Fills in the inspection for named tensors without a model, of which `request` takes a part.
    fn state(&mut self, files: &SharedFiles, request: &PortableModelImportRequest) -> Result<()> {
        request.check_for_model()?;
        let opened = open_state(files, NamePolicy::Source)?.state;
        let selected = opened.select(request)?;
        if request.non_finite == NonFinitePolicy::Refuse {
            opened.check_finite(&selected)?;
        }
        let warnings = opened.warnings.iter().chain(&selected.warnings);
        self.warnings = warnings.map(ReportedWarning::from).collect();
        let entries = selected.entries.into_iter();
        let tensors: Vec<_> = entries.map(|entry| entry.tensor).collect();
        let taken = tensors.iter();
        let taken = taken.map(|one| FileTensor::new(&one.state_key, &one.dtype, &one.shape));
        self.tensors = taken.collect();
        let facts = ContractFacts::default();
        let contract = ModelIoCompatibilityContract::of(&opened.identity, facts, &tensors)?;
        self.contract = Some(contract);
        Ok(())
    }
}

fn listed(tensor: &Tensor) -> FileTensor {
    FileTensor::new(&tensor.name, &tensor.dtype, &tensor.shape)
}

/// Computes the memory of a step with each update rule and precision, at their defaults, for one sequence.
fn trainable(config: &ModelConfig) -> Result<Trainable> {
    let mut options = Vec::new();
    for optimizer in OptimizerConfig::every() {
        for precision in [Precision::F32, Precision::Bf16] {
            let train = TrainConfig {
                optimizer: optimizer.clone(),
                precision,
                batch_size: 1,
                seq_len: PLANNED_TOKENS.min(config.max_position_embeddings),
                ..TrainConfig::default()
            };
            options.push(TrainingOption {
                optimizer: optimizer_record(&optimizer, train.learning_rate)?.kind,
                precision,
                bytes: memory_plan(config, &train, None, false)?.total(),
            });
        }
    }
    Ok(Trainable {
        ok: true,
        reason: None,
        options,
    })
}
