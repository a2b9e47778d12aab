//! Low-rank adapters of PEFT: their configuration, their tensors, and their product with a base (crate/FORMATS.md, "PEFT adapter").

mod base_digest;
mod config;
mod fields;
mod merged_adapter;
mod open;
mod pair_checks;
mod pairs;
mod tables;
mod write;

pub(crate) use base_digest::BASE_DIGEST;
pub use config::LoraConfig;
pub use merged_adapter::MergedAdapter;
pub(crate) use open::{CONFIG, WEIGHTS};
pub(super) use open::{attach_adapter, merge_adapter};
pub(crate) use pairs::PREFIX;
pub use write::adapter_config_json;
pub(crate) use write::adapter_tensors;
