//! Training data: turns a text or a list of examples into batches, in a seeded order that can be resumed exactly.

mod answers;
mod batch;
mod chat;
mod corpus;
mod entries;
mod example;
mod files;
mod form;
mod hash;
mod json;
mod loader;
mod overview;
mod pack;
mod part;
mod place;
mod preview;
mod read;
mod records;
mod report;
mod rows;
mod settle;
mod shape;
mod source;
mod split;
mod store;
mod suggest;
mod table;
mod text;

pub use batch::{Batch, Batches, IGNORE_INDEX};
pub use corpus::{Dataset, no_document_ends};
pub use loader::{Fit, Loader, LoaderState};
pub use place::RowPlace;
pub use preview::{Preview, PreviewToken, Segment};
pub use read::DataReader;
pub use report::{DataReport, DataWarning, FileReport, FileSummary, Lengths, TokenCounts};
pub use source::{DataFile, DataSource, TokenStorage};
