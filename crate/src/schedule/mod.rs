//! The learning rate as a pure function of the step, and when a decay starts.
//!
//! Steps count from 1; the curves are written over n = step − 1, the steps that are complete before it. All f64.

mod curve;
mod start;

pub use curve::{learning_rate, preview};
pub use start::{is_config_only, resolve_start, trigger};
