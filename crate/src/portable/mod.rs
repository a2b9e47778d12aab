//! A model's state as typed data: named tensors with the groups that train them, read from every container, selected, renamed, changed by
//! deltas, and written to every container. Values are read only on demand.
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::rc::Rc;
//! use tabtune::bundle::{ByteSource, FileStream, MemorySource};
//! use tabtune::portable::{ModelMetadata, PortableModelBundle, SharedFiles, Support};
//! use tabtune::state::{
//!     Bytes, Identity, Operation, PortableModelImportRequest, PortableModelStateDict, SourceWord, Tensor,
//! };
//!
//! /// A model of two tensors.
//! fn model(head: [f32; 2]) -> tabtune::Result<PortableModelStateDict> {
//!     let tensor = |name: &str, values: [f32; 2]| {
//!         let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
//!         (name.to_string(), Tensor::parameter(name, "F32", &[2], Bytes::host(bytes)))
//!     };
//!     let tensors = BTreeMap::from([tensor("body.weight", [1.0, 2.0]), tensor("head.weight", head)]);
//!     PortableModelStateDict::new(Identity::default(), SourceWord::Tabtune, tensors, Vec::new())
//! }
//!
//! /// The files of a stream in memory, as sources.
//! async fn files(mut stream: FileStream) -> tabtune::Result<SharedFiles> {
//!     let mut files: Vec<(String, Vec<u8>)> =
//!         stream.files().iter().map(|file| (file.name.clone(), Vec::new())).collect();
//!     while let Some(chunk) = stream.next_chunk().await? {
//!         files[chunk.file].1.extend(chunk.bytes);
//!     }
//!     let source = |(name, bytes): (String, Vec<u8>)| -> Rc<dyn ByteSource> { Rc::new(MemorySource::new(name, bytes)) };
//!     Ok(files.into_iter().map(source).collect())
//! }
//!
//! # fn block_on<T>(future: impl Future<Output = T>) -> T {
//! #     let mut future = std::pin::pin!(future);
//! #     loop {
//! #         let mut context = std::task::Context::from_waker(std::task::Waker::noop());
//! #         if let std::task::Poll::Ready(value) = future.as_mut().poll(&mut context) { return value }
//! #     }
//! # }
//! # block_on(async {
//! // The exact difference of two models, and the second one again from the first.
//! let (base, tuned) = (model([0.5, 1.0])?, model([0.25, 1.0])?);
//! let delta = base.derive_adapter_delta(&tuned, "tuned").await?;
//! assert_eq!(delta.changed().collect::<Vec<_>>(), ["head.weight"]);
//! let again = base.apply_adapter_delta(&delta, false).await?;
//! assert_eq!(again.weights_digest().await?, tuned.weights_digest().await?);
//!
//! // What it can be written as; a safetensors file with manifest and receipt, and a part of it read under another name.
//! let bundle = PortableModelBundle { state_dict: again, metadata: ModelMetadata::default() };
//! let contract = bundle.compatibility_contract(true).await?;
//! assert_eq!(contract.row("tabtune_manifest_safetensors").map(|row| row.round_trip.support), Some(Support::Supported));
//! let written = files(bundle.export_safetensors().await?).await?;
//! let request = r#"{"selection": {"include_patterns": ["head.*"]}, "key_remap": {"source_to_target": {"head.weight": "out"}}}"#;
//! let request = PortableModelImportRequest::read(request)?;
//! let imported = PortableModelBundle::import_safetensors_with_request(written, &request).await?;
//! assert_eq!(imported.bundle.state_dict.dense_f32("out").await?, [0.25, 1.0]);
//! assert_eq!(imported.receipt.operation, Operation::Import);
//! assert_eq!(imported.receipt.tensors.dropped, ["body.weight"]);
//! # Ok::<(), tabtune::Error>(())
//! # }).unwrap();
//! ```

mod bundle;
mod checkpoint_source;
mod containers;
mod continuation;
mod contract;
mod delta;
mod delta_of_files;
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
mod plan_report;
mod run_state;
mod safetensors;
mod subspace;
mod torch_optimizer;
mod training;

pub use bundle::{ImportedBundle, PortableModelBundle};
pub use contract::{ContractCell, ContractRow, ModelIoCompatibilityContract, Support};
pub use delta::ModelAdapterDelta;
pub use imports::SharedFiles;
pub use model_metadata::ModelMetadata;
pub use training::TrainingGroups;

pub use crate::state::PortableModelImportRequest;

// For the packages of this workspace.
#[doc(hidden)]
pub use self::{
    bundle::OpenedBundle,
    checkpoint_source::checkpoint_source,
    contract::ContractFacts,
    delta_of_files::{DeltaFiles, DeltaReport, DeltaUse, derive_delta, use_delta},
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
    plan_report::{PlanReport, PlannedGroup, PlannedTensor, plan_files},
    run_state::RunState,
    safetensors::open_safetensors,
};
