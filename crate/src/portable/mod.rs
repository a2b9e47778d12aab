//! A model's state as typed data: named tensors with the groups that train them, read from every container, selected, renamed, changed by
//! deltas, and written to every container. Values are read only on demand.

mod answer;
mod bundle;
mod checkpoint_source;
mod contract;
mod delta;
mod difference;
mod export_source;
mod extract;
mod imports;
mod json;
mod model_metadata;
mod outlook;
mod safetensors;
mod subspace;
mod training;

pub use answer::{Answer, AnswerKind, TokenizerFacts, ToldWarning, Trainable, TrainingOption, answer};
pub use bundle::{ImportedBundle, PortableModelBundle};
pub use checkpoint_source::checkpoint_source;
pub use contract::{ContractCell, ContractFacts, ContractRow, ModelIoCompatibilityContract, Support};
pub use delta::{DeltaKind, ModelAdapterDelta};
pub use extract::{ExtractOptions, ExtractReport, Extracted, ExtractedTensor, UncoveredTensor, extract_adapter};
pub use imports::{OpenedBundle, SharedFiles, open_checkpoint, open_gguf, open_hf_folder};
pub use json::open_json;
pub use model_metadata::ModelMetadata;
pub use outlook::{answers_of, model_answer};
pub use safetensors::open_safetensors;
pub use training::TrainingGroups;
