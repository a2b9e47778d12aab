//! The GGUF container of llama.cpp, versions 2 and 3.

mod cursor;
mod ggml_type;
mod header;
mod layout;
mod split;
mod value;
mod writer;

pub use ggml_type::GgmlType;
pub use header::GgufFile;
pub use split::part_of;
pub(crate) use split::{join_parts, stem_of};
pub use value::GgufValue;
pub use writer::{GgufHeader, GgufSpan, gguf_header};
