//! Settings as plain data. `validate` reports all faults at once. [`TrainConfig::overlaid`] takes settings as JSON;
//! `crate/SETTINGS.md` describes every key and its values, also those of rarely changed settings, whose types are left
//! out of this page.
//!
//! ```
//! use tabtune::config::{AdamwConfig, GroupConfig, OptimizerConfig, ScheduleConfig, TrainConfig, WsdSchedule};
//!
//! # fn main() -> tabtune::Result<()> {
//! let config = TrainConfig {
//!     steps: 1000,
//!     optimizer: OptimizerConfig::Adamw(AdamwConfig { weight_decay: 0.1, ..AdamwConfig::default() }),
//!     groups: vec![GroupConfig { frozen: true, ..GroupConfig::new("*embed*") }, GroupConfig::new("*")],
//!     schedule: ScheduleConfig::Wsd(WsdSchedule { warmup_steps: 100, ..WsdSchedule::default() }),
//!     ..TrainConfig::default()
//! };
//! config.validate()?;
//! # Ok(())
//! # }
//! ```

mod adafactor;
mod adamw;
mod adapter;
mod adapter_continued;
mod adapter_limited;
mod adapter_modules;
mod adapter_targets;
mod adapter_values;
mod apollo;
mod apollo_values;
mod block_coordinate;
mod chosen;
mod data;
mod declare;
mod delta_net;
mod glob;
mod groups;
mod hyperparameters;
mod idle;
mod json;
mod layer;
mod model;
mod optimizer;
mod optimizer_kind;
mod patterns;
mod rules;
mod schedule;
mod sgd;
mod slot;
mod state_word;
mod train;

pub use adafactor::*;
pub use adamw::*;
pub use adapter::*;
pub use adapter_values::*;
pub use apollo::*;
pub use apollo_values::*;
pub use block_coordinate::*;
pub use data::*;
pub use groups::*;
pub use model::*;
pub use optimizer::*;
pub use schedule::*;
pub use sgd::*;
pub use train::*;

// For the packages of this workspace.
#[doc(hidden)]
pub use self::{
    adapter_modules::{Module, ModuleKind, PeftNames},
    adapter_targets::{AdapterWarning, Resolved, Target},
    chosen::{Beginning, Choices, ChosenSetting, EVAL_EVERY},
    delta_net::*,
    glob::{check_glob, glob_matches},
    json::overlay,
    layer::*,
    patterns::*,
    slot::*,
    state_word::StateWord,
};
pub(crate) use declare::settings;
pub(crate) use hyperparameters::{FINITE, LEARNING_RATE};
pub(crate) use optimizer_kind::{Hyperparameter, Kept, KeptTensor, OptimizerKind, Range, matrix};
pub(crate) use rules::Rules;
