//! A model's state as typed data: named tensors with the groups that train them, read from every container, selected, renamed, changed by
//! deltas, and written to every container. Values are read only on demand.

mod bundle;
mod checkpoint_source;
mod containers;
mod continuation;
mod contract;
mod delta;
mod difference;
mod export_options;
mod export_source;
mod extract;
mod factors;
mod imports;
mod inspection;
mod json;
mod model_metadata;
mod parameter_names;
mod run_state;
mod safetensors;
mod subspace;
mod torch_optimizer;
mod training;

pub use bundle::{ImportedBundle, PortableModelBundle};
pub use imports::SharedFiles;
pub use training::TrainingGroups;

pub use crate::state::PortableModelImportRequest;

// For the packages of this workspace.
#[doc(hidden)]
pub use self::{
    bundle::OpenedBundle,
    checkpoint_source::checkpoint_source,
    contract::{ContractCell, ContractFacts, ContractRow, ModelIoCompatibilityContract, Support},
    delta::ModelAdapterDelta,
    export_options::export_options_of,
    extract::{
        ExtractOptions, ExtractReport, Extracted, ExtractedTensor, UncoveredTensor, extract_adapter,
    },
    imports::{is_bare_state, open_checkpoint, open_gguf, open_hf_folder, open_state},
    inspection::{
        Inspection, InspectionKind, ReportedWarning, TokenizerFacts, Trainable, TrainingOption,
        inspection,
    },
    json::open_json,
    model_metadata::ModelMetadata,
    run_state::RunState,
    safetensors::open_safetensors,
};
