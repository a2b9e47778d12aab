//! A model's state as typed data: named tensors with the groups that train them, read from every container, selected, renamed, changed by
//! deltas, and written to every container. No value is read before it is asked for.

mod account;
mod answer;
mod bundle;
mod contract;
mod delta;
mod difference;
mod export_source;
mod extract;
mod imports;
mod json;
mod model_metadata;
mod opened;
mod outgoing;
mod outlook;
mod payload;
mod plan;
mod receipt;
mod safetensors;
mod source_word;
mod state_dict;
mod subspace;
mod survey;
mod training;

pub use answer::{Answer, AnswerKind, TokenizerFacts, ToldWarning, Trainable, TrainingOption, answer};
pub use bundle::{ImportedBundle, PortableModelBundle};
pub use contract::{ContractCell, ContractFacts, ContractRow, ModelIoCompatibilityContract, Support};
pub use delta::{DeltaKind, ModelAdapterDelta};
pub use extract::{ExtractOptions, ExtractReport, Extracted, ExtractedTensor, UncoveredTensor, extract_adapter};
pub use imports::{OpenedBundle, SharedFiles, open_checkpoint, open_gguf, open_hf_folder};
pub use json::open_json;
pub use model_metadata::ModelMetadata;
pub use opened::{ImportedState, OpenedFile, OpenedState, OpenedTensor};
pub use outgoing::{checkpoint_source, export};
pub use outlook::{answers_of, model_answer};
pub use payload::Payload;
pub use plan::{PlanEntry, PortableModelBundleImportPlan};
pub use safetensors::open_safetensors;
pub use source_word::SourceWord;
pub use state_dict::{PortableModelStateDict, SelectedStateDict, StateTensorEntry};
pub use training::TrainingGroups;
