//! Reads data files as rows: bytes → text → form → rows, each with its place.

mod array;
mod boundary;
mod element;
mod files;
mod form;
mod gzip;
mod json;
mod kinds;
mod lines;
mod newlines;
mod note;
mod place;
mod refused;
mod report;
mod row;
mod rows;
mod seen;
mod source;
mod suggest;
mod table;
mod table_rows;
mod text;

pub(super) use self::{
    files::{Opened, are_tokens, has_tokens, opened, whole_text},
    form::{find_form, hint_of},
    gzip::Contents,
    note::Note,
    place::{NAMED_ROWS, placed},
    refused::{refused, told},
    report::form_of,
    row::{Fields, SEVERAL, is_python},
    rows::{ROWS_AT_ONCE, Rows},
    seen::Seen,
    source::{pause, unreadable},
    suggest::{listed, named, pairs, unknown},
    table::FEWER_NAMES,
    text::TextReader,
};
pub use self::{
    place::RowPlace,
    report::{DataWarning, FileReport, FileSummary},
    source::{DataFile, DataSource, TokenStorage},
};
