//! Converts reports to their names in TypeScript: the case of field names changes here, in `model_info.rs` and in `error.rs`, and nowhere else.

use serde::Serialize;
use serde_json::{Map, Value};
use tabtune::config::TrainConfig;
use tabtune::error::{Error, Fault, Result};
use tabtune::formats::Digest;
use tabtune::gpu::profile::{KernelTime, ProfileReport, Timing};
use tabtune::measure::{GpuReport, KernelRate, Measure};
use tabtune::model::FrozenWeights;
use tabtune::state::Base;
use tabtune::train::{Notice, StepReport, Trainer};

use crate::model_info::{AdapterInfo, ModelInfo};

/// Facts about the model that a run started from.
#[derive(Serialize)]
pub(crate) struct BaseInfo {
    name: String,
    format: String,
    files: Vec<BaseFileInfo>,
    /// Number of matrices that are constant while an adapter is trained, by their storage type on the device.
    storage: std::collections::BTreeMap<String, usize>,
    /// Size in bytes of everything that is constant while an adapter is trained, on the device.
    bytes: u64,
}

#[derive(Serialize)]
struct BaseFileInfo {
    name: String,
    bytes: u64,
    sha256: Option<Digest>,
    #[serde(rename = "headerSha256")]
    header_sha256: Option<Digest>,
    /// SHA-256 of the sums of its pieces, if those are known: equal for equal files.
    #[serde(rename = "piecesSha256")]
    pieces_sha256: Option<Digest>,
}

impl BaseInfo {
    /// Collects the facts about a base whose constants are on the device as `frozen` says.
    pub(crate) fn new(base: &Base, frozen: &FrozenWeights) -> Self {
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

/// Converts a report of the core to JSON with its keys as TypeScript has them. Keys that are data have no underscores.
pub(crate) fn in_camel_case(report: &impl Serialize) -> Result<Value> {
    fn renamed(value: Value) -> Value {
        match value {
            Value::Object(fields) => Value::Object(
                fields
                    .into_iter()
                    .map(|(key, value)| (camel(&key), renamed(value)))
                    .collect::<Map<_, _>>(),
            ),
            Value::Array(items) => Value::Array(items.into_iter().map(renamed).collect()),
            plain => plain,
        }
    }
    fn camel(key: &str) -> String {
        let mut words = key.split('_');
        let first = words.next().unwrap_or_default().to_owned();
        words.fold(first, |name, word| {
            let mut letters = word.chars();
            name + &letters
                .next()
                .map(|c| c.to_ascii_uppercase())
                .into_iter()
                .chain(letters)
                .collect::<String>()
        })
    }
    let value = serde_json::to_value(report);
    value.map(renamed).map_err(|error| {
        Error::InvalidConfig(vec![Fault::new("report", "numbers that JSON has", error)])
    })
}

/// Facts about a run.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionInfo {
    pub(crate) completed_steps: u64,
    pub(crate) total_steps: u64,
    pub(crate) config: TrainConfig,
    pub(crate) model: ModelInfo,
    pub(crate) adapter: Option<AdapterInfo>,
    pub(crate) base: Option<BaseInfo>,
    pub(crate) data_tokens: usize,
    /// `DataReport`.
    pub(crate) data: Value,
    pub(crate) gpu_bytes: Option<u64>,
    pub(crate) fallbacks: Vec<String>,
    pub(crate) schedule_start: Option<u64>,
    pub(crate) manual_learning_rate: Option<f64>,
    pub(crate) warnings: Vec<Notice>,
}

/// [`StepReport`] under its names in TypeScript.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Step {
    pub(crate) step: u64,
    pub(crate) epoch: f64,
    pub(crate) loss: f64,
    pub(crate) grad_norm: f64,
    pub(crate) learning_rate: f64,
    pub(crate) tokens: u64,
    pub(crate) secs: f64,
}

impl From<StepReport> for Step {
    fn from(
        StepReport {
            step,
            epoch,
            loss,
            grad_norm,
            learning_rate,
            tokens,
            secs,
        }: StepReport,
    ) -> Self {
        Self {
            step,
            epoch,
            loss,
            grad_norm,
            learning_rate,
            tokens,
            secs,
        }
    }
}

/// Progress of a run after a call, and the reports that arrived during it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Advanced {
    completed_steps: u64,
    reports: Vec<Step>,
}

impl Advanced {
    pub(crate) fn of(trainer: &Trainer, reports: Vec<StepReport>) -> Self {
        Self {
            completed_steps: trainer.progress().completed_steps,
            reports: reports.into_iter().map(Step::from).collect(),
        }
    }
}

/// [`ProfileReport`] under its names in TypeScript.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Profiled {
    steps: u64,
    timing: Timing,
    ms: f64,
    dispatches: f64,
    unmeasured: u64,
    in_use_bytes: u64,
    reserved_bytes: u64,
    kernels: Vec<KernelTime>,
}

impl From<ProfileReport> for Profiled {
    fn from(report: ProfileReport) -> Self {
        let ProfileReport {
            steps,
            timing,
            ms,
            dispatches,
            unmeasured,
            in_use_bytes,
            reserved_bytes,
            kernels,
        } = report;
        Self {
            steps,
            timing,
            ms,
            dispatches,
            unmeasured,
            in_use_bytes,
            reserved_bytes,
            kernels,
        }
    }
}

/// [`KernelRate`] under its names in TypeScript.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rate {
    name: String,
    shape: String,
    whole: bool,
    kernels: Vec<String>,
    ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    gflop_per_sec: Option<f64>,
    gb_per_sec: f64,
    fraction: f64,
    of: Measure,
    in_step: u64,
}

impl From<KernelRate> for Rate {
    fn from(rate: KernelRate) -> Self {
        let KernelRate {
            name,
            shape,
            whole,
            kernels,
            ms,
            gflop_per_sec,
            gb_per_sec,
            fraction,
            of,
            in_step,
        } = rate;
        Self {
            name,
            shape,
            whole,
            kernels,
            ms,
            gflop_per_sec,
            gb_per_sec,
            fraction,
            of,
            in_step,
        }
    }
}

/// [`GpuReport`] under its names in TypeScript.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Measured {
    adapter: String,
    driver: String,
    backend: String,
    software: bool,
    timing: Timing,
    peak_gflop_per_sec: f64,
    copy_gb_per_sec: f64,
    kernels: Vec<Rate>,
}

impl From<GpuReport> for Measured {
    fn from(report: GpuReport) -> Self {
        let GpuReport {
            adapter,
            driver,
            backend,
            software,
            timing,
            peak_gflop_per_sec,
            copy_gb_per_sec,
            kernels,
        } = report;
        let kernels = kernels.into_iter().map(Rate::from).collect();
        Self {
            adapter,
            driver,
            backend,
            software,
            timing,
            peak_gflop_per_sec,
            copy_gb_per_sec,
            kernels,
        }
    }
}
