//! Configuration: plain data. `validate` finds everything wrong at once.

mod glob;
mod groups;
mod json;
mod model;
mod optimizer;
mod rules;
mod schedule;
mod train;

pub use glob::{check_glob, glob_matches};
pub use groups::*;
pub use json::overlay;
pub use model::*;
pub use optimizer::*;
pub use schedule::*;
pub use train::*;
