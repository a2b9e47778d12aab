//! Where a run stands.

use serde::{Deserialize, Serialize};

use crate::state::Evaluation;

/// The progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Number of completed optimizer steps.
    pub completed_steps: u64,
    /// Number of counted targets so far.
    pub tokens: u64,
    /// Step at which the schedule's decay or annealing starts, if it is decided.
    pub schedule_start: Option<u64>,
    /// A rate set by hand, until it is released.
    pub manual_learning_rate: Option<f64>,
    /// Loss of the last step, in nats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_loss: Option<f64>,
    /// The last whole evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Evaluation>,
}
