//! Training data: a text or a list of examples → batches, in a seeded order that can be resumed exactly.

mod answers;
mod batch;
mod chat;
mod corpus;
mod example;
mod files;
mod form;
mod loader;
mod overview;
mod pack;
mod preview;
mod read;
mod report;
mod rows;
mod settle;
mod shape;

pub use batch::{Batch, Batches, IGNORE_INDEX};
pub use corpus::{Dataset, no_document_ends};
pub use files::DataFile;
pub use loader::{Fit, Loader, LoaderState};
pub use preview::{Preview, PreviewToken, Segment};
pub use report::{DataReport, DataWarning, FileReport, FileSummary, Lengths, RowPlace, TokenCounts};
