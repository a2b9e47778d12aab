//! A model's state as typed data: named tensors with the groups that train them, read from every container, selected, renamed, changed by
//! deltas, and written to every container. Values are read only on demand.

mod bundle;
mod checkpoint_source;
mod contract;
mod delta;
mod difference;
mod export_options;
mod export_source;
mod extract;
mod imports;
mod inspection;
mod json;
mod model_metadata;
mod safetensors;
mod subspace;
mod training;

pub use bundle::{ImportedBundle, PortableModelBundle};
pub use checkpoint_source::checkpoint_source;
pub use contract::{ContractCell, ContractFacts, ContractRow, ModelIoCompatibilityContract, Support};
pub use delta::{DeltaKind, ModelAdapterDelta};
pub use export_options::{export_options_of, export_options_of_model};
pub use extract::{ExtractOptions, ExtractReport, Extracted, ExtractedTensor, UncoveredTensor, extract_adapter};
pub use imports::{OpenedBundle, SharedFiles, open_checkpoint, open_gguf, open_hf_folder};
pub use inspection::{Inspection, InspectionKind, TokenizerFacts, ToldWarning, Trainable, TrainingOption, inspection};
pub use json::open_json;
pub use model_metadata::ModelMetadata;
pub use safetensors::open_safetensors;
pub use training::TrainingGroups;
