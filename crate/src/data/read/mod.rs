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
mod lookahead;
mod newlines;
mod note;
mod place;
mod report;
mod row;
mod rows;
mod source;
mod suggest;
mod table;
mod table_rows;
mod text;

pub(super) use self::{
    files::{Opened, are_tokens, has_tokens, opened, pass_on, whole_text},
    form::{find_form, hint_of},
    gzip::{Contents, Trailing},
    newlines::Newlines,
    note::Note,
    place::{NAMED_ROWS, placed},
    report::form_of,
    row::{SEVERAL, is_python},
    rows::{ROWS_AT_ONCE, Rows},
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
