//! What a state dict says of its tensors and groups: plain data, checked here, without any payload.

mod check;
mod findings;
mod group;
mod kept;
mod manifest;
mod manifest_compare;
mod manifest_parts;
mod manifest_read;
mod request;
mod select;
mod tensor;
mod tokenizer_record;

pub use check::{check_groups, check_trainable};
pub use group::{
    GroupClass, GroupMember, ModelStateGroupAssignment, OptimizerAccount, ParameterSemantics, Residency, ResidencyPolicy, SchedulerAccount,
};
pub use manifest::{AssetAccount, ManifestFile, StateManifest, StatedDigests, TemplateAccount, TensorRecord, TokenizerAccount};
pub(crate) use manifest::{MANIFEST_FILE, MANIFEST_KEY};
pub(crate) use manifest_parts::{base as base_of, files as files_of, groups as groups_of, tensors as tensors_of};
pub use request::{
    GroupPolicy, NamePolicy, NonFinitePolicy, PortableModelImportRequest, PortableTensorImportSelection, PortableTensorKeyRemap,
    TensorMaterializationPolicy, VerifyPolicy,
};
pub use select::{Selected, SelectedTensor, SelectionReport, select};
pub use tensor::{Identity, ModelStateTensorManifest, StateWord, TensorRole, byte_len};
pub use tokenizer_record::{AssetFormat, TokenizerFamily, TokenizerRecord};
