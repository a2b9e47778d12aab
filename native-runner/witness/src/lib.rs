//! An independent check of the training mathematics: trains the same weights on the same batches with tabtune's kernels and with Burn's own
//! operations, on any device of Burn, and compares the two runs.

pub mod arithmetic;
pub mod cli;
mod comparison;
mod method;
mod subject;
mod track;

pub use comparison::{Bounds, Comparison, compare};
pub use method::{Method, Rule};
pub use subject::{MODEL_TYPES, Subject};
pub use tabtune_bench::stock::Planted;
pub use track::{Track, by_stock, by_trainer};
