//! Model IO: bytes of files → configuration, tokenizer and tensors, and back. Every file is untrusted: it is checked once, here.

mod adapter;
mod assets;
mod config_check;
mod contents;
mod conversion;
mod counted;
mod decode;
mod digest;
mod encode;
mod encoded;
mod ends;
mod fit;
mod gguf;
mod gguf_config;
mod gguf_keys;
mod gguf_model;
mod gguf_stream;
mod gguf_tokenizer;
mod gguf_vocabulary;
mod hf_config;
mod hf_config_edit;
mod hf_folder;
mod index;
mod inspect;
mod json;
mod manifest_stream;
mod names;
mod open;
mod paired_rows;
mod pieces;
mod prefixes;
mod provenance;
mod receipt;
mod receipt_parts;
mod refusal;
mod safetensors;
mod safetensors_stream;
mod sha256;
mod source;
mod state;
mod state_digests;
mod state_json;
mod stored;
mod stored_rows;
mod stream;
mod sums;
mod tensors;
mod tokenizer_binding;
mod tokenizer_files;
mod transposed;
mod verify;
mod written;

pub(crate) use adapter::{BASE_DIGEST, CONFIG as ADAPTER_CONFIG, PREFIX as ADAPTER_PREFIX, WEIGHTS as ADAPTER_WEIGHTS};
pub use adapter::{LoraConfig, MergedAdapter, MergedTensor, Targets, adapter_config_json, adapter_tensors};
pub use assets::ModelAssets;
pub(crate) use contents::Contents;
pub use conversion::Conversion;
pub(crate) use decode::{Encoding, count_non_finite};
pub use digest::{
    BundleParts, Digest, DocumentKind, Hasher, assignment_digest, bundle_digest, canonical, document_digest, leaf, optimizer_digest,
    state_digest, template_digest, tokenizer_digest, weights_digest,
};
pub use encode::{Encoder, TensorType};
pub(crate) use encoded::{EncodedTensor, Values};
pub use fit::refuse_non_finite;
pub use gguf::{GgmlType, GgufFile, GgufHeader, GgufRecord, GgufSpan, GgufTensor, GgufValue, gguf_header};
pub(crate) use gguf_config::llama3_of;
pub use gguf_keys::{Effect, KEYS, effect};
pub(crate) use gguf_model::summed_gguf;
pub(crate) use gguf_stream::{GgufContents, GgufOutput};
pub(crate) use gguf_vocabulary::tokenizer_keys;
pub use hf_config::{config_from_hf, config_to_hf};
pub use hf_config_edit::edited_config;
pub use inspect::{FileFormat, InspectReport, InventoryTensor, inspect};
pub(crate) use json::{Fields, Json, Wrong, document as json_document, typed as json_typed};
pub(crate) use names::{HEAD, Layout, ROPE_FREQS, embedding, factor_names, from_gguf, to_gguf};
pub(crate) use open::gguf_files;
pub use open::{OpenOptions, open_bundle, open_bundle_with};
pub(crate) use paired_rows::PairedRows;
pub use pieces::{PIECE_ELEMENTS, Pieces};
pub(crate) use provenance::sha256_of;
pub use provenance::{Base, BaseFile};
pub use receipt::{
    CheckResult, DataRecord, Evaluation, EvaluationRecord, LossRecord, ModelIoArtifactReceipt, Operation, RECEIPT, ReceiptCheck,
    ReceiptFile, ReceiptGroups, ReceiptTensors, ReceiptWarning, Tool, TrainingRecord,
};
pub use refusal::Warning;
pub(crate) use refusal::known_mark;
pub(crate) use safetensors::dtype_bits;
pub use safetensors::{SafetensorsFile, SafetensorsMetadata, SafetensorsTensor, safetensors_header};
pub use safetensors_stream::OPTIMIZER_WEIGHTS;
pub(crate) use safetensors_stream::refuse_blocks;
pub use source::{ByteSink, ByteSource, MemorySource, read_whole, truncated};
pub(crate) use source::{SourceSpan, base_name};
pub use state::{
    AssetAccount, AssetFormat, GroupClass, GroupMember, GroupPolicy, Identity, ManifestFile, ModelStateGroupAssignment,
    ModelStateTensorManifest, NamePolicy, NonFinitePolicy, OptimizerAccount, ParameterSemantics, PortableModelImportRequest,
    PortableTensorImportSelection, PortableTensorKeyRemap, Residency, ResidencyPolicy, SchedulerAccount, Selected, SelectedTensor,
    SelectionReport, StateManifest, StateWord, StatedDigests, TemplateAccount, TensorMaterializationPolicy, TensorRecord, TensorRole,
    TokenizerAccount, TokenizerFamily, TokenizerRecord, VerifyPolicy, byte_len, check_groups, check_trainable, select,
};
pub(crate) use state::{MANIFEST_FILE, MANIFEST_KEY, base_of, files_of, groups_of, tensors_of};
pub use state_digests::{StateDigests, StatedResult};
pub(crate) use state_json::{JSON_FILE, JSON_FORMAT, MAX_JSON_BYTES, read_state_json};
pub use stored::{StoredBytes, StoredTensor};
pub use stream::{Chunk, FileInfo, FileStream, StreamTensor, StreamValues};
pub(crate) use tensors::unreadable;
pub use tensors::{Bundle, SourceFormat, dequantise};
pub use tokenizer_binding::{PortableTokenizerBinding, TokenizerAsset};
pub use tokenizer_files::CARRIED_FILES;
pub(crate) use transposed::Transposed;
pub use verify::{Check, Verification, verify, verify_files};
pub(crate) use written::Known;
