//! Configuration: plain data. `validate` finds everything wrong at once.

mod groups;
mod json;
mod model;
mod optimizer;
mod rules;
mod schedule;
mod train;

pub use groups::*;
pub use json::overlay;
pub use model::*;
pub use optimizer::*;
pub use schedule::*;
pub use train::*;
