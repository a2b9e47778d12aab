//! Settings as plain data. `validate` reports all faults at once. [`TrainConfig::overlaid`] takes settings as JSON; `crate/SETTINGS.md` describes
//! every key and its values, also those of rarely changed settings, whose types are left out of this page.

mod adapter;
mod adapter_continued;
mod adapter_limited;
mod adapter_modules;
mod adapter_targets;
mod adapter_values;
mod apollo;
mod block_coordinate;
mod data;
mod glob;
mod groups;
mod idle;
mod json;
mod layer;
mod model;
mod optimizer;
mod patterns;
mod rules;
mod schedule;
mod train;

pub use adapter::*;
pub use adapter_values::*;
pub use apollo::*;
pub use block_coordinate::*;
pub use data::*;
pub use groups::*;
pub use model::*;
pub use optimizer::*;
pub use schedule::*;
pub use train::*;

// For the packages of this workspace.
#[doc(hidden)]
pub use self::{
    adapter_modules::{Module, ModuleKind, PeftNames},
    adapter_targets::{AdapterWarning, Resolved, Target},
    glob::{check_glob, glob_matches},
    json::overlay,
    layer::*,
    patterns::*,
};
