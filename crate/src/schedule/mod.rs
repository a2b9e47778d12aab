//! The learning rate as a pure function of the step, and when a decay starts.
//!
//! Steps count from 1; the curves are functions of n = step − 1, the number of completed steps. All arithmetic is f64.

mod curve;
mod fit;
mod scheduler;
mod start;

pub use curve::learning_rate;
pub(crate) use fit::highest_rate;
pub use scheduler::Scheduler;

// For the packages of this workspace.
#[doc(hidden)]
pub use self::{
    curve::preview,
    fit::misfits,
    start::{is_config_only, resolve_start, trigger},
};
