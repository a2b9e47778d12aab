//! One optimizer step at a time; the driver owns the loop.

mod evaluate;
mod gradients;
mod loss;
mod memory;
mod rate;
mod release;
pub mod replay;
mod report;
mod trainer;

pub use evaluate::evaluate;
pub use gradients::{NamedGradients, accumulate};
pub use loss::{head_loss_sum, loss_sum};
pub use memory::{MemoryPlan, check_limits, memory_plan};
pub use rate::check_rate;
pub use report::{EvalReport, Notice, StepReport};
pub use trainer::{Progress, Trainer};
