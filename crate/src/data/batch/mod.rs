//! Makes batches of examples: store, split, order, packing, and the reports on them.

mod batches;
mod dataset;
mod examples;
mod hash;
mod loader;
mod mixture;
mod order;
mod pack;
mod preview;
mod reader;
mod report;
mod settle;
mod side;
mod split;
mod store;
mod warnings;

pub use self::{
    batches::{Batch, Batches, IGNORE_INDEX},
    dataset::{Dataset, no_document_ends},
    loader::{Fit, Loader, LoaderState},
    preview::{Preview, PreviewToken, Segment},
    reader::DataReader,
    report::{DataReport, Lengths, TokenCounts},
};
