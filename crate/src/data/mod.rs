//! Training data: turns a text or a list of examples into batches, in a seeded order that can be resumed exactly.

mod answer_span;
mod answers;
mod array;
mod batch;
mod boundary;
mod chat;
mod corpus;
mod element;
mod entries;
mod example;
mod files;
mod form;
mod gzip;
mod hash;
mod header;
mod json;
mod kinds;
mod lines;
mod loader;
mod mixture;
mod newlines;
mod note;
mod order;
mod overview;
mod pack;
mod part;
mod place;
mod positions;
mod preview;
mod read;
mod record;
mod records;
mod report;
mod row;
mod rows;
mod settle;
mod shape;
mod source;
mod split;
mod store;
mod suggest;
mod table;
mod text;
mod text_findings;
mod unread_parts;
mod warnings;
mod window;

pub use corpus::Dataset;
pub use source::{DataFile, DataSource};

// For the packages of this workspace.
#[doc(hidden)]
pub use self::{
    batch::{Batch, Batches, IGNORE_INDEX},
    corpus::no_document_ends,
    loader::{Fit, Loader, LoaderState},
    place::RowPlace,
    preview::{Preview, PreviewToken, Segment},
    read::DataReader,
    report::{DataReport, DataWarning, FileReport, FileSummary, Lengths, TokenCounts},
    source::TokenStorage,
};
