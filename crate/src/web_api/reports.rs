//! Reports under the names of TypeScript: field names change their case here, in `model.rs` and in `error.rs`, and nowhere else.

use serde::Serialize;

use super::model::ModelInfo;
use crate::config::TrainConfig;
use crate::train::{Notice, StepReport};

/// Facts about a run.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionInfo {
    pub(super) completed_steps: u64,
    pub(super) total_steps: u64,
    pub(super) config: TrainConfig,
    pub(super) model: ModelInfo,
    pub(super) data_tokens: usize,
    pub(super) gpu_bytes: Option<u64>,
    pub(super) fallbacks: Vec<String>,
    pub(super) schedule_start: Option<u64>,
    pub(super) manual_learning_rate: Option<f64>,
    pub(super) warnings: Vec<Notice>,
}

/// [`StepReport`] under the names of TypeScript.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Step {
    pub(super) step: u64,
    pub(super) loss: f64,
    pub(super) grad_norm: f64,
    pub(super) learning_rate: f64,
    pub(super) tokens: u64,
    pub(super) secs: f64,
}

impl From<StepReport> for Step {
    fn from(StepReport { step, loss, grad_norm, learning_rate, tokens, secs }: StepReport) -> Self {
        Self { step, loss, grad_norm, learning_rate, tokens, secs }
    }
}
