//! Configuration: plain data. `validate` finds everything wrong at once.

mod groups;
mod model;
mod optimizer;
mod schedule;
mod train;

pub use groups::*;
pub use model::*;
pub use optimizer::*;
pub use schedule::*;
pub use train::*;
