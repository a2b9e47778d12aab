//! An independent witness of the training mathematics: the same weights and batches trained by this crate's kernels and by Burn's own operations,
//! on any device of Burn, and what differs.

pub mod arithmetic;
pub mod cli;
mod comparison;
mod subject;
mod track;

pub use comparison::{Bounds, Comparison, compare};
pub use subject::{Family, Subject};
pub use tabtune_bench::stock::Planted;
pub use track::{Track, by_stock, by_trainer};
