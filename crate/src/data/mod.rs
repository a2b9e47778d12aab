//! Training data: a text or a list of examples → batches, in a seeded order that can be resumed exactly.

mod answers;
mod batch;
mod chat;
mod corpus;
mod loader;

pub use batch::{Batch, Batches, IGNORE_INDEX};
pub use corpus::{DataFormat, Dataset, no_document_ends};
pub use loader::{Loader, LoaderState};
