//! Trains one optimizer step at a time; the driver owns the loop.

mod account;
mod advance;
mod backward;
mod constants;
mod coordinates;
mod estimate;
mod evaluate;
mod hyperparameters;
mod loss;
mod memory;
mod outstanding;
mod place;
mod progress;
mod rate;
mod release;
mod repeat;
mod report;
mod trainer;
mod update;

pub use account::{DEFAULT_GROUP, MemberState, group_accounts};
pub use backward::{NamedGradients, accumulate};
pub use constants::{LargestTensor, StoredForms, check_inference_limits, check_limits};
pub use coordinates::active_blocks;
pub use estimate::{Estimate, EstimateParts, estimate};
pub use evaluate::evaluate;
pub use hyperparameters::{LEARNING_RATE, optimizer_account, optimizer_config, schedule_config, scheduler_account};
pub use loss::{head_loss_sum, loss_sum};
pub use memory::{MemoryPlan, memory_plan, memory_plan_of};
pub use place::Placed;
pub use progress::Progress;
pub use rate::check_rate;
pub use report::{EvalReport, Notice, StepReport};
pub use trainer::Trainer;
