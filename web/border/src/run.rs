//! Facts about a run, and its progress.

use std::collections::BTreeMap;

use serde::Serialize;
use tabtune::config::{ChosenSetting, TrainConfig};
use tabtune::data::DataReport;
use tabtune::formats::Digest;
use tabtune::model::FrozenWeights;
use tabtune::state::Base;
use tabtune::train::{Notice, StepReport};

use crate::model::{AdapterInfo, ModelInfo};

/// Facts about the model that a run started from.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BaseInfo {
    /// Name that its files state, else the name of the first file without its ending.
    name: String,
    /// Form of the files: `hf_folder` or `gguf`.
    format: String,
    /// The weight files.
    files: Vec<BaseFileInfo>,
    /// For an adapter run: number of the base's matrices on the device, by storage type.
    storage: BTreeMap<String, usize>,
    /// For an adapter run: number of bytes of the base on the device.
    bytes: u64,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct BaseFileInfo {
    /// File name.
    name: String,
    /// Size in bytes.
    bytes: u64,
    /// SHA-256 of the whole file, if all of it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<Digest>,
    /// SHA-256 of the part that lists its tensors.
    #[serde(skip_serializing_if = "Option::is_none")]
    header_sha256: Option<Digest>,
    /// SHA-256 of the sums of its pieces, if those are known: equal for equal files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pieces_sha256: Option<Digest>,
}

impl BaseInfo {
    /// Collects the facts about a base whose constants are on the device as `frozen` says.
    pub fn new(base: &Base, frozen: &FrozenWeights) -> Self {
        let files = base.files.iter().map(|file| {
            let (sha256, header_sha256) = (file.sha256, file.header_sha256);
            let pieces = file
                .pieces
                .as_ref()
                .map(|pieces| pieces.iter().map(Digest::to_string).collect::<String>());
            let pieces_sha256 = pieces.map(|sums| Digest::of(sums.as_bytes()));
            BaseFileInfo {
                name: file.name.clone(),
                bytes: file.bytes,
                sha256,
                header_sha256,
                pieces_sha256,
            }
        });
        Self {
            name: base.name.clone(),
            format: base.format.clone(),
            files: files.collect(),
            storage: frozen.matrices.clone(),
            bytes: frozen.bytes,
        }
    }
}

/// Facts about a run.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionInfo {
    /// Number of steps that are complete.
    pub completed_steps: u64,
    /// Number of steps of the whole run.
    pub total_steps: u64,
    /// Settings of the run.
    #[cfg_attr(
        feature = "schema",
        schemars(with = "serde_json::Map<String, serde_json::Value>")
    )]
    pub config: TrainConfig,
    /// Settings that were chosen for a new run without a learning rate, with their reasons.
    pub chosen: Vec<ChosenSetting>,
    /// The model that is trained.
    pub model: ModelInfo,
    /// The adapter that is trained in place of the weights, if there is one.
    pub adapter: Option<AdapterInfo>,
    /// Files that the run started from; a new model has none.
    pub base: Option<BaseInfo>,
    /// Number of tokens in the training data.
    pub data_tokens: usize,
    /// Report on the training data and how they are learned.
    pub data: DataReport,
    /// Bytes that are reserved on the device, if it reports them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_bytes: Option<u64>,
    /// Tensors that APOLLO leaves to AdamW: embeddings and head unless also projected, vectors, and those with a shorter
    /// side of at most the rank.
    pub fallbacks: Vec<String>,
    /// Step after which a decay or an annealing begins, if one is planned or has begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule_start: Option<u64>,
    /// Current learning rate, if it was set manually.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manual_learning_rate: Option<f64>,
    /// Warnings about settings, data and what a resume dropped or changed.
    pub warnings: Vec<Notice>,
}

/// Progress of a run after a call, and the reports that arrived during it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advanced {
    /// Number of steps that are complete.
    pub completed_steps: u64,
    /// Reports of steps.
    pub reports: Vec<StepReport>,
}
