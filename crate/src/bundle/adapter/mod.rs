//! Low-rank adapters of PEFT: their configuration, their tensors, and their product with a base (crate/FORMATS.md, "PEFT adapter").

mod base_digest;
mod config;
mod merge;
mod open;
mod pairs;
mod report;
mod scaling;
mod targets;

pub use config::LoraConfig;
pub use merge::MergedAdapter;
pub(super) use merge::{Factors, Merge};
pub(super) use open::merge_adapter;
pub use report::MergedTensor;
pub use targets::{Pattern, Targets};
