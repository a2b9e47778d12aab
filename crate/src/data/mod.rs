//! Training data: turns a text or a list of examples into batches, in a seeded order that can be resumed exactly. `read` makes rows of files,
//! `chat` examples of rows, `batch` batches of examples; each imports from those before it.

mod batch;
mod chat;
mod read;

pub use batch::Dataset;
pub use read::{DataFile, DataSource};

// For the packages of this workspace.
#[doc(hidden)]
pub use self::{
    batch::{
        Batch, Batches, DataReader, DataReport, Fit, IGNORE_INDEX, Lengths, Loader, LoaderState,
        Preview, PreviewToken, Segment, TokenCounts, no_document_ends,
    },
    chat::{characters, summaries, train_tokenizer},
    read::{DataWarning, FileReport, FileSummary, RowPlace, TokenStorage},
};
