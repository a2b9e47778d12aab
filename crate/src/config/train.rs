//! A training run's settings.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{GroupConfig, OptimizerConfig, ScheduleConfig};
use crate::error::{Error, Fault, Result};

/// How weight matrices and moments are stored. All arithmetic is f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 4 bytes.
    #[default]
    F32,
    /// 2 bytes, written with stochastic rounding.
    Bf16,
}

/// The order in which the training data comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataOrder {
    /// By the seed, another in each epoch.
    #[default]
    Shuffled,
    /// As it lies in the data, from its first token, the same in each epoch.
    Sequential,
}

/// Everything that `Trainer` needs beside model and data. Unknown keys are refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainConfig {
    /// Optimizer steps of the whole run.
    pub steps: u64,
    /// Sequences of one micro-batch (B).
    pub batch_size: usize,
    /// Tokens of one sequence (T).
    pub seq_len: usize,
    /// Micro-batches per step.
    pub gradient_accumulation_steps: usize,
    /// Peak learning rate.
    pub learning_rate: f64,
    /// Bound of the global gradient norm; 0 = no clipping.
    pub max_grad_norm: f64,
    /// Seed of everything random in the run.
    pub seed: u64,
    /// Storage of matrices and moments.
    pub precision: Precision,
    /// Update rule.
    pub optimizer: OptimizerConfig,
    /// Parameter groups; empty = one group of everything.
    pub groups: Vec<GroupConfig>,
    /// Learning rate over the steps.
    pub schedule: ScheduleConfig,
    /// Recompute each block in the backward pass instead of keeping its activations.
    pub gradient_checkpointing: bool,
    /// Update the parameters of each block as soon as its gradients are complete, so that those of one block exist at a time. Blocks are
    /// recomputed. For one micro-batch a step and no bound of the gradient norm.
    pub gradient_release: bool,
    /// Let a token see no document but its own where a sequence holds several. Without it a token sees all that stands before it in the
    /// sequence, as GPT-2 and most of its successors were trained.
    pub document_mask: bool,
    /// Order of the training data.
    pub data_order: DataOrder,
    /// Share of the text kept for evaluation, from its end.
    pub validation_fraction: f64,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            steps: 100,
            batch_size: 4,
            seq_len: 128,
            gradient_accumulation_steps: 1,
            learning_rate: 1e-3,
            max_grad_norm: 1.0,
            seed: 0,
            precision: Precision::F32,
            optimizer: OptimizerConfig::default(),
            groups: Vec::new(),
            schedule: ScheduleConfig::default(),
            gradient_checkpointing: false,
            gradient_release: false,
            document_mask: false,
            data_order: DataOrder::default(),
            validation_fraction: 0.0,
        }
    }
}

/// `under` with the keys of `over` on top, to any depth. Another `type` replaces the whole.
pub fn overlay(under: Value, over: Value) -> Value {
    match (under, over) {
        (Value::Object(mut under), Value::Object(over)) => {
            if over.get("type").is_some_and(|kind| under.get("type").is_some_and(|old| old != kind)) {
                return Value::Object(over);
            }
            for (key, value) in over {
                let old = under.remove(&key).unwrap_or(Value::Null);
                under.insert(key, overlay(old, value));
            }
            Value::Object(under)
        }
        (_, over) => over,
    }
}

impl TrainConfig {
    /// These settings with the `given` keys on top, not validated. A schedule that falls over the run and says no length falls over the whole
    /// run, and one that did so goes on to do so where `given` changes the steps alone.
    pub fn overlaid(&self, given: Map<String, Value>) -> serde_json::Result<Self> {
        let mut under = serde_json::to_value(self)?;
        if under["schedule"]["total_steps"] == under["steps"] && given.contains_key("steps") {
            under["schedule"]["total_steps"] = given["steps"].clone();
        }
        let mut merged = overlay(under, Value::Object(given));
        let steps = merged["steps"].clone();
        if let Some(schedule) = merged["schedule"].as_object_mut().filter(|s| ["cosine", "linear"].iter().any(|kind| s["type"] == *kind)) {
            schedule.entry("total_steps").or_insert(steps);
        }
        serde_json::from_value(merged)
    }

    /// Refuses settings that cannot work; every fault is listed.
    pub fn validate(&self) -> Result<()> {
        let mut faults = Vec::new();
        let mut positive = |key: &str, value: u64| {
            if value == 0 {
                faults.push(Fault::new(key, "an integer ≥ 1", value));
            }
        };
        positive("steps", self.steps);
        positive("batch_size", self.batch_size as u64);
        positive("seq_len", self.seq_len as u64);
        positive("gradient_accumulation_steps", self.gradient_accumulation_steps as u64);
        if !(self.learning_rate.is_finite() && self.learning_rate > 0.0) {
            faults.push(Fault::new("learning_rate", "finite and > 0", self.learning_rate));
        }
        if !(self.max_grad_norm.is_finite() && self.max_grad_norm >= 0.0) {
            faults.push(Fault::new("max_grad_norm", "finite and ≥ 0", self.max_grad_norm));
        }
        if !(0.0..1.0).contains(&self.validation_fraction) {
            faults.push(Fault::new("validation_fraction", "0 ≤ fraction < 1", self.validation_fraction));
        }
        if self.gradient_release && self.gradient_accumulation_steps != 1 {
            faults.push(Fault::new("gradient_accumulation_steps", "1 with gradient_release", self.gradient_accumulation_steps));
        }
        if self.gradient_release && self.max_grad_norm != 0.0 {
            faults.push(Fault::new("max_grad_norm", "0 with gradient_release: the norm is known after the updates", self.max_grad_norm));
        }
        faults.extend(self.optimizer.faults(self.learning_rate));
        for (index, group) in self.groups.iter().enumerate() {
            faults.extend(group.faults(index, self.learning_rate));
        }
        faults.extend(self.schedule.faults(self.learning_rate));
        if faults.is_empty() { Ok(()) } else { Err(Error::InvalidConfig(faults)) }
    }
}
