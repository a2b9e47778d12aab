//! Configuration: plain data. `validate` finds everything wrong at once.

mod model;
mod optimizer;
mod schedule;
mod train;

pub use model::*;
pub use optimizer::*;
pub use schedule::*;
pub use train::*;
