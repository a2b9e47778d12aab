//! Reports that only the browser's side has.

use serde::Serialize;
use tabtune::config::{ChosenSetting, TrainConfig};
use tabtune::data::{DataReport, Preview};
use tabtune::tokenizer::TextWarning;
use tabtune::train::MemoryPlan;

/// Device memory that a run needs.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// Bytes in use at the peak of a step.
    need_bytes: u64,
    parts: Parts,
}

/// Bytes at the peak of a step: either `weights`, or a `base` with its `adapter`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Parts {
    /// Trained weights of the model; 0 if an adapter is trained.
    weights: u64,
    /// Trained factors and modules of an adapter; 0 without one.
    adapter: u64,
    base: u64,
    grads: u64,
    optimizer: u64,
    activations: u64,
}

impl Estimate {
    /// Divides the memory of a plan among its purposes; `apart` if an adapter is trained instead of the weights.
    pub fn of(plan: &MemoryPlan, apart: bool) -> Self {
        let (base, weights, adapter) = if apart {
            (plan.base, 0, plan.weights - plan.base)
        } else {
            (0, plan.weights, 0)
        };
        let parts = Parts {
            weights,
            adapter,
            base,
            grads: plan.gradients,
            optimizer: plan.optimizer,
            activations: plan.activations,
        };
        Self {
            need_bytes: plan.total(),
            parts,
        }
    }
}

/// Report on how data are learned, with the first examples.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DataInspection {
    /// Report on the data.
    pub report: DataReport,
    /// The first examples.
    pub preview: Vec<Preview>,
    /// The settings of a run on these data.
    #[cfg_attr(
        feature = "schema",
        schemars(with = "serde_json::Map<String, serde_json::Value>")
    )]
    pub config: TrainConfig,
    /// Settings that would be chosen for it, with their reasons; none if a learning rate is given, or if the data are the beginning of a file.
    pub chosen: Vec<ChosenSetting>,
}

/// Ids of a text, and warnings about it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tokenized {
    /// The ids, without special tokens.
    pub ids: Vec<u32>,
    /// Warnings about the text.
    pub warnings: Vec<TextWarning>,
}
