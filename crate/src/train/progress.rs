//! Progress of a run, which a checkpoint stores.

use serde::{Deserialize, Serialize};

use crate::state::Evaluation;

/// Progress of a run ([example](crate)).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Number of completed optimizer steps.
    pub completed_steps: u64,
    /// Number of counted targets so far.
    pub tokens: u64,
    /// Step at which the schedule's decay or annealing starts, if it is decided.
    #[doc(hidden)]
    pub schedule_start: Option<u64>,
    /// Rate set by hand, until control returns to the schedule.
    #[doc(hidden)]
    pub manual_learning_rate: Option<f64>,
    /// Number of steps that were made with other data, before the run continued with the present ones; `None` if there were none.
    #[doc(hidden)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps_on_other_data: Option<u64>,
    /// Number of steps that were made with other settings, before a resume changed them; `None` if all had the present ones.
    #[doc(hidden)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps_on_other_settings: Option<u64>,
    /// Loss of the last step, in nats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_loss: Option<f64>,
    /// The last complete evaluation.
    #[doc(hidden)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Evaluation>,
}
