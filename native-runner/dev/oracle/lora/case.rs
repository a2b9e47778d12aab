//! A case of a model with a separate adapter, as its file states it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use tabtune::config::GroupConfig;

use super::super::CeExpect;

/// A case of a model with a separate adapter.
#[derive(Debug, Deserialize)]
pub struct LoraCase {
    /// Path of the model, relative to the assets folder.
    pub model: String,
    /// Path of the model's tokenizer.json.
    pub tokenizer: String,
    /// Path of the adapter.
    pub lora: String,
    /// Feature that the case needs in addition to a plain adapter.
    #[serde(default)]
    pub feature: Option<String>,
    /// Computation, and its expected results.
    #[serde(flatten)]
    pub task: LoraTask,
}

/// Computation of a case, with its inputs and expected results.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind")]
pub enum LoraTask {
    /// Cross-entropy of the `count` tokens after `start`.
    #[serde(rename = "lora_ce")]
    Ce {
        text: String,
        start: usize,
        count: usize,
        expect: CeExpect,
    },
    /// Loss and gradients of one batch.
    #[serde(rename = "lora_grad")]
    Grad {
        text: String,
        starts: Vec<usize>,
        length: usize,
        expect: LoraGradExpect,
    },
    /// A short run.
    #[serde(rename = "lora_train")]
    Train {
        text: String,
        length: usize,
        steps: Vec<Vec<usize>>,
        #[serde(default)]
        micro_batches: Option<usize>,
        optimizer: Value,
        #[serde(default)]
        groups: Vec<GroupConfig>,
        expect: LoraTrainExpect,
    },
}

impl LoraTask {
    /// Path of the text, relative to the assets folder.
    pub fn text(&self) -> &str {
        match self {
            Self::Ce { text, .. } | Self::Grad { text, .. } | Self::Train { text, .. } => text,
        }
    }
}

/// Expected results of a `lora_grad` case.
#[derive(Debug, Deserialize)]
pub struct LoraGradExpect {
    pub(super) loss: f64,
    /// Gradient norm over all trained tensors.
    pub(super) norm: f64,
    /// Gradient norm of each trained tensor.
    pub(super) norms: BTreeMap<String, f64>,
    /// First four values of each gradient.
    pub(super) samples: BTreeMap<String, Vec<f64>>,
}

/// Expected results of a `lora_train` case.
#[derive(Debug, Deserialize)]
pub struct LoraTrainExpect {
    pub(super) losses: Vec<f64>,
    pub(super) grad_norms: Vec<f64>,
    pub(super) final_loss: f64,
    pub(super) adapter_norm: f64,
    pub(super) adapter_change: f64,
    pub(super) tensors: BTreeMap<String, TrainedExpect>,
}

/// Expected values of a trained tensor.
#[derive(Debug, Deserialize)]
pub(super) struct TrainedExpect {
    pub(super) shape: Vec<u64>,
    pub(super) norm: f64,
    pub(super) change: f64,
    pub(super) first: Vec<f64>,
}
