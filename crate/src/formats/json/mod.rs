//! JSON of untrusted files: one left-to-right scan that refuses a key given twice, deep nesting and every departure from RFC 8259. The scan
//! builds nothing: a value is its text, and lists and objects are walked on demand, so that a document takes no more memory than its text.
//! Numbers stay text, so that nothing is rounded before it is judged.

mod document;
mod read;
mod scan;
mod value;
mod walk;

pub use document::key_twice;
pub(crate) use document::{DocumentError, Fields, MAX_DEPTH, document, typed, wrong_if};
pub(crate) use scan::parse;
pub(crate) use value::{Json, JsonFault};
