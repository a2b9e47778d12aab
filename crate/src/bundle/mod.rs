//! Model files: bytes of files → configuration, tokenizer and tensors, and back. Every file is untrusted: it is checked once, here.

mod adapter;
mod assets;
mod bundle_tokenizer;
mod check_tensors;
mod checksums;
mod file_digests;
mod files;
mod folder_weights;
mod gguf_model;
mod gguf_stream;
mod gguf_tokenizer;
mod gguf_tokenizer_check;
mod gguf_vocabulary;
mod hf_folder;
mod index;
mod inspect;
mod json_document;
mod kind;
mod open;
mod options;
mod prefixes;
mod provenance;
mod refusals;
mod safetensors_stream;
mod same_numbers;
mod spliced_stream;
mod state_json;
mod stored_rows;
mod stream;
mod stream_receipt;
mod tensor_hasher;
mod tensors;
mod tokenizer_binding;
mod tokenizer_files;
mod verify;

pub(crate) use adapter::adapter_tensors;
pub(crate) use adapter::{
    BASE_DIGEST, CONFIG as ADAPTER_CONFIG, PREFIX as ADAPTER_PREFIX, WEIGHTS as ADAPTER_WEIGHTS,
};
pub use assets::ModelAssets;
pub(crate) use files::gguf_files;
pub(crate) use folder_weights::weight_files;
pub(crate) use gguf_model::summed_gguf;
pub(crate) use gguf_vocabulary::tokenizer_keys;
pub(crate) use kind::{CHECKPOINT, FilesKind, STATE_JSON};
pub(crate) use open::no_state;
pub use options::OpenOptions;
pub(crate) use safetensors_stream::{Contents, OPTIMIZER_WEIGHTS, format_pt, refuse_blocks};
pub(crate) use spliced_stream::SplicedFile;
pub(crate) use state_json::{JSON_FORMAT, MAX_JSON_BYTES, read_state_json};
pub(crate) use stored_rows::StoredRows;
pub use stream::{Chunk, FileInfo, FileStream};
pub use tensors::Bundle;
pub use tokenizer_binding::{PortableTokenizerBinding, TokenizerAsset};

pub use crate::error::Warning;
pub use crate::formats::{ByteSource, MemorySource};
#[doc(hidden)]
pub use crate::state::{PIECE_ELEMENTS, Pieces, dequantise};

// For the packages of this workspace.
#[doc(hidden)]
pub use self::{
    adapter::{LoraConfig, MergedAdapter, adapter_config_json},
    inspect::{FileFormat, InspectReport, inspect},
    open::{open_bundle, open_bundle_with},
    verify::{Check, Verification, verify, verify_files, verify_with_inputs},
};
