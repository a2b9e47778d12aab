//! Exports weights for other programs: a Hugging Face folder that `safetensors`, `transformers` and tabtune load, and GGUF files for llama.cpp,
//! from a model on the device or from one that is only in its files. Every export has a receipt.

mod architecture;
mod card;
mod choices;
mod folder;
mod gguf;
mod gguf_adapter;
mod gguf_types;
mod merged;
mod options;
mod patch;
mod peft;
mod planned;
mod recipe;
mod source;

pub use choices::{ExportChoice, export_choices};
pub use folder::{SHARD_BYTES, export_folder};
pub use gguf::export_gguf;
pub use gguf_adapter::export_gguf_adapter;
pub use gguf_types::GgufTypes;
pub use merged::export_merged;
pub(crate) use merged::opened_merged;
pub use options::{ExportDtype, ExportFormat, ExportOptions, JsonEncoding, ModelCard};
pub use peft::{check_kind, export_adapter};
pub use source::{ExportSource, Weights, training_record};
