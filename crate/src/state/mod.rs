//! State as typed data: named tensors, the groups that train them, digests, manifests and receipts. It is plain data, checked here without any
//! payload. [`portable`](crate::portable) reads it from every container and writes it to every container.
//!
//! | type | contents |
//! |---|---|
//! | [`PortableModelStateDict`] | tensors by name, and the groups that train them |
//! | [`ModelStateTensorManifest`], [`ModelStateGroupAssignment`] | the description of a tensor, and of a group |
//! | [`PortableModelImportRequest`] | what an import takes ([`PortableTensorImportSelection`]), and under which names ([`PortableTensorKeyRemap`]) |
//! | [`PortableModelBundleImportPlan`] | an import that reads values when they are asked for |
//! | [`ModelIoArtifactReceipt`] | what an import, an export or a conversion read, wrote, changed and compared |

mod account;
mod bytes;
mod check;
mod conversion;
mod digest;
mod encoded;
mod expected;
mod findings;
mod gathering;
mod group;
mod manifest;
mod manifest_compare;
mod manifest_read;
mod merged;
mod opened_state;
mod origin;
mod pieces;
mod plan;
pub(crate) mod receipt;
mod receipt_parts;
mod reordering;
mod request;
mod row_order;
mod row_range;
mod select;
mod state_dict;
mod state_digests;
mod state_receipt;
mod survey;
mod tensor;
mod tensor_checks;
mod tensor_manifest;
mod tokenizer_record;

pub use crate::config::StateWord;
pub use crate::formats::Digest;
pub(crate) use account::Input;
pub use conversion::Conversion;
pub(crate) use conversion::changes_of;
pub(crate) use digest::document_digest;
pub(crate) use encoded::EncodedReader;
pub(crate) use group::group_ids;
pub use group::{
    GroupClass, GroupMember, ModelStateGroupAssignment, OptimizerRecord, ParameterSemantics,
    Residency, ResidencyPolicy, SchedulerAccount,
};
pub(crate) use manifest::{MANIFEST_FILE, MANIFEST_KEY};
pub use manifest::{StateManifest, StatedDigests, TensorRecord};
pub(crate) use manifest_read::{
    base as base_of, files as files_of, groups as groups_of, tensors as tensors_of,
};
pub use opened_state::{ImportedState, OpenedState};
pub use origin::{Base, BaseFile, SourceFormat, SourceWord};
pub use plan::{PlanEntry, PortableModelBundleImportPlan};
pub use receipt::{
    CheckResult, DataRecord, Evaluation, EvaluationRecord, LossRecord, ModelIoArtifactReceipt,
    Operation, ReceiptCheck, ReceiptFile, ReceiptGroups, ReceiptTensors, ReceiptWarning, Tool,
    TrainingRecord,
};
pub(crate) use reordering::{less_one, transposed};
pub use request::{
    GroupPolicy, NamePolicy, NonFinitePolicy, PortableModelImportRequest,
    PortableTensorImportSelection, PortableTensorKeyRemap, TensorMaterializationPolicy,
    VerifyPolicy,
};
pub(crate) use row_order::RowOrder;
pub use select::SelectionReport;
pub(crate) use state_dict::{JSON_FILE, MODEL_FILE, OPTIMIZER_FILE};
pub use state_dict::{PortableModelStateDict, SelectedStateDict};
pub(crate) use state_digests::ArtifactDigests;
pub use state_digests::StateDigests;
pub(crate) use survey::{refuse_non_finite_as, survey};
pub(crate) use tensor::Pair;
pub use tensor::{Bytes, Tensor};
pub use tensor_manifest::{Identity, ModelStateTensorManifest, TensorRole};
pub(crate) use tokenizer_record::TEMPLATES;
pub use tokenizer_record::{AssetFormat, TokenizerFamily, TokenizerRecord};

// For the packages of this workspace.
#[doc(hidden)]
pub use self::{
    check::{check_groups, check_trainable},
    digest::{
        DocumentKind, assignment_digest, bundle_digest, canonical, leaf, optimizer_digest,
        state_digest, template_digest, tokenizer_digest, weights_digest,
    },
    manifest::{AssetAccount, ManifestFile, TemplateAccount, TokenizerAccount},
    opened_state::OpenedFile,
    pieces::{Pieces, dequantise},
    receipt::RECEIPT,
    reordering::Reordering,
    row_order::Tiles,
    select::{Selected, SelectedTensor, select},
    survey::refuse_non_finite,
    tensor::{Encoded, Merged, Moved, PIECE_ELEMENTS, Span},
    tensor_manifest::byte_len,
    tokenizer_record::CARRIED_FILES,
};
