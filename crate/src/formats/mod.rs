//! File formats: bytes → headers and values, and back. This room knows no model; every file is untrusted and is checked here.

pub(crate) mod blocks;
pub(crate) mod checksum;
mod document;
mod file_tensor;
mod flaw;
pub(crate) mod gguf;
pub(crate) mod json;
mod mark;
mod refuse;
pub(crate) mod safetensors;
mod source;

pub(crate) use crate::error::base_name;
pub use blocks::{Encoder, TensorType};
pub(crate) use blocks::{Encoding, Planes, count_non_finite, unreadable};
pub use checksum::{Digest, Hasher};
pub(crate) use document::read_document;
pub use document::read_whole;
pub use file_tensor::FileTensor;
pub(crate) use flaw::describe_flaw;
pub use flaw::not_json;
pub use gguf::{GgmlType, GgufFile, GgufHeader, GgufSpan, GgufValue, gguf_header, part_of};
pub(crate) use gguf::{join_parts, stem_of};
pub use json::key_twice;
pub(crate) use json::{
    DocumentError, Fields, Json, JsonFault, document as json_document, typed as json_typed,
    wrong_if,
};
pub use mark::{Flaw, foreign};
pub(crate) use mark::{first_flaw, known_mark, or_mismatch};
pub(crate) use refuse::{refuse_if, too_large};
pub(crate) use safetensors::dtype_bits;
pub use safetensors::{
    SafetensorsFile, SafetensorsHeader, SafetensorsMetadata, safetensors_header,
};
pub use source::{ByteSink, ByteSource, HubOrigin, MemorySource, truncated};
pub(crate) use source::{SourceSpan, for_each_chunk, reserved, sha256_of};
