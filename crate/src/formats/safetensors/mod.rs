//! The safetensors container: a length of eight bytes, a JSON header, the data.

mod dtype;
mod header;
mod writer;

pub(crate) use dtype::dtype_bits;
pub use header::{SafetensorsFile, SafetensorsMetadata};
pub use writer::{SafetensorsHeader, safetensors_header};
