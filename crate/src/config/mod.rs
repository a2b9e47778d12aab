//! Settings as plain data. `validate` reports all faults at once.

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
mod json;
mod layer;
mod model;
mod optimizer;
mod patterns;
mod rules;
mod schedule;
mod train;

pub use adapter::*;
pub use adapter_modules::{Module, ModuleKind, PeftNames};
pub use adapter_targets::{AdapterWarning, Resolved, Target};
pub use adapter_values::*;
pub use apollo::*;
pub use block_coordinate::*;
pub use data::*;
pub use glob::{check_glob, glob_matches};
pub use groups::*;
pub use json::overlay;
pub use layer::*;
pub use model::*;
pub use optimizer::*;
pub use patterns::*;
pub use schedule::*;
pub use train::*;
