//! Trains one optimizer step at a time; the driver owns the loop.

mod account;
mod advance;
mod backward;
mod block_coordinate;
mod constants;
mod device_batch;
mod drivers;
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

pub(crate) use account::DEFAULT_GROUP;
pub use progress::Progress;
pub(crate) use rate::check_rate;
pub use report::{EvalReport, Notice, StepReport};
pub use trainer::Trainer;

// For the packages of this workspace.
#[doc(hidden)]
pub use self::{
    account::{MemberState, group_accounts},
    backward::{NamedGradients, accumulate},
    block_coordinate::active_blocks,
    constants::{LargestTensor, StoredForms, check_inference_limits, check_limits},
    device_batch::DeviceBatch,
    estimate::{Estimate, EstimateParts, estimate},
    evaluate::evaluate,
    hyperparameters::{
        LEARNING_RATE, optimizer_config, optimizer_record, schedule_config, scheduler_account,
    },
    loss::{head_loss_sum, loss_sum},
    memory::{MemoryPlan, memory_plan},
};
