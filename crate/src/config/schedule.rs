//! Learning-rate schedules (`optimizers.md` §11).

use serde::{Deserialize, Serialize};

use crate::error::Fault;

/// The learning rate over the steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub enum ScheduleConfig {
    /// The peak rate throughout, after a warmup.
    Constant {
        /// Steps of linear warmup.
        #[serde(default)]
        warmup_steps: u64,
    },
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        Self::Constant { warmup_steps: 0 }
    }
}

impl ScheduleConfig {
    /// Rules that these values break at the given peak rate.
    pub fn faults(&self, _learning_rate: f64) -> Vec<Fault> {
        Vec::new()
    }
}
