//! Model IO: bytes of files → configuration, tokenizer and tensors, and back. Every file is untrusted: it is checked once, here.

mod adapter;
mod assets;
mod config_check;
mod decode;
mod gguf;
mod gguf_config;
mod gguf_tokenizer;
mod hf_config;
mod index;
mod inspect;
mod json;
mod names;
mod open;
mod pieces;
mod quants;
mod refusal;
mod safetensors;
mod source;
mod state_json;
mod stream;
mod tensors;

pub use assets::ModelAssets;
pub use gguf::{GgmlType, GgufFile, GgufTensor, GgufValue};
pub use hf_config::{config_from_hf, config_to_hf};
pub use inspect::{FileFormat, InspectReport, InventoryTensor, inspect};
pub use open::open_bundle;
pub use pieces::{PIECE_ELEMENTS, Pieces};
pub use refusal::Warning;
pub use safetensors::{SafetensorsFile, SafetensorsTensor, safetensors_header};
pub use source::{ByteSink, ByteSource, MemorySource};
pub use stream::{Chunk, FileInfo, FileStream, StreamTensor, StreamValues};
pub use tensors::{Bundle, SourceFormat, dequantise};
