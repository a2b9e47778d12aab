//! Reports and errors that cross from the core to TypeScript, and the one map of their names.
#![deny(missing_docs)]
#![deny(unsafe_code)]

mod details;
mod error;
mod model;
mod names;
mod reports;
mod run;

pub use details::Details;
pub use error::{Thrown, renamed};
pub use model::{AdapterInfo, ModelInfo, TensorInfo};
pub use names::Named;
#[cfg(feature = "schema")]
pub use names::{camel, is_document};
pub use reports::{DataInspection, Estimate, Tokenized};
pub use run::{Advanced, BaseInfo, SessionInfo};
