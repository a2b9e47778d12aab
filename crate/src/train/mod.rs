//! Trains one optimizer step at a time; the driver owns the loop.

mod account;
mod advance;
mod backward;
mod block_coordinate;
mod constants;
mod device_batch;
mod estimate;
mod evaluate;
mod hyperparameters;
mod loss;
mod memory;
mod outstanding;
mod progress;
mod rate;
mod recorded_step;
mod release;
mod repeat;
mod report;
mod trainer;
mod turn;
mod update;

pub use account::{DEFAULT_GROUP, MemberState, group_accounts};
pub use backward::{NamedGradients, accumulate};
pub use block_coordinate::active_blocks;
pub use constants::{LargestTensor, StoredForms, check_inference_limits, check_limits};
pub use device_batch::DeviceBatch;
pub use estimate::{Estimate, EstimateParts, estimate};
pub use evaluate::evaluate;
pub use hyperparameters::{LEARNING_RATE, optimizer_config, optimizer_record, schedule_config, scheduler_account};
pub use loss::{head_loss_sum, loss_sum};
pub use memory::{MemoryPlan, memory_plan, memory_plan_of};
pub use progress::Progress;
pub use rate::check_rate;
pub use report::{EvalReport, Notice, StepReport};
pub use trainer::Trainer;
