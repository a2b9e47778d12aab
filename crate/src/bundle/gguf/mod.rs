//! The GGUF container of llama.cpp, versions 2 and 3.

mod cursor;
mod header;
mod layout;
mod types;
mod value;

pub use header::{GgufFile, GgufTensor};
pub use types::GgmlType;
pub use value::GgufValue;
