//! Plans of imports of files, from their headers alone.

use serde::Serialize;

use super::bundle::OpenedBundle;
use super::imports::{SharedFiles, open_headers};
use super::inspection::ReportedWarning;
use crate::error::Result;
use crate::state::{
    PortableModelBundleImportPlan, PortableModelImportRequest, Residency, ResidencyPolicy,
    SourceWord, TensorMaterializationPolicy,
};

/// Plan of an import: the tensors that it takes, and where their bytes are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanReport {
    /// Container of the files.
    pub source_format: String,
    /// Digest of the request, the headers and the entries, in hex: equal plans have equal digests.
    pub plan_digest: String,
    /// Tensors that are taken, ascending by their new names.
    pub entries: Vec<PlannedTensor>,
    /// Groups whose optimizer state is taken with them, in their order.
    pub groups: Vec<PlannedGroup>,
    /// Unusual but allowed properties of the files and the request.
    pub warnings: Vec<ReportedWarning>,
}

/// Tensor of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedTensor {
    /// New name.
    pub name: String,
    /// Name in the files.
    pub source_key: String,
    /// Name of its file. In a JSON state dict a tensor has no position.
    pub file: String,
    /// Position of its first byte in the file.
    pub begin: u64,
    /// Position one past its last byte.
    pub end: u64,
    /// dtype as stored.
    pub dtype: String,
    /// Row-major shape.
    pub shape: Vec<u64>,
    /// True if its values have not been read.
    pub deferred: bool,
}

/// Group of a plan, and where its state is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedGroup {
    /// Name of the group.
    pub group_id: String,
    /// Number of its parameters.
    pub members: usize,
    /// Number of steps that were applied to it.
    pub applied_steps: u64,
    /// Residency of its state when it was saved, if that is stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub residency: Option<Residency>,
    /// Intended residency of its state, if that is stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub residency_policy: Option<ResidencyPolicy>,
}

/// Plans the import of `files` that `request` asks for, from their headers alone: a second head of a tied model is assumed to equal the
/// embedding, and the bytes of a checkpoint are not verified. Values are read when the plan is asked for them.
///
/// # Errors
/// `select.*`, `remap.*`, and errors of opening.
pub async fn plan_files(
    files: &SharedFiles,
    request: PortableModelImportRequest,
) -> Result<PortableModelBundleImportPlan> {
    let request = PortableModelImportRequest {
        materialization_policy: TensorMaterializationPolicy::Deferred,
        ..request
    };
    let OpenedBundle { state, .. } = open_headers(files, request.names)?;
    PortableModelBundleImportPlan::new(state, request).await
}

impl PlanReport {
    /// Describes `plan`.
    pub fn of(plan: &PortableModelBundleImportPlan) -> Self {
        let is_deferred = plan.deferred_tensor_count() > 0;
        let entries = plan.entries.iter().map(|(name, entry)| PlannedTensor {
            name: name.clone(),
            source_key: entry.source_key.clone(),
            file: entry.file.clone(),
            begin: entry.begin,
            end: entry.end,
            dtype: entry.dtype.clone(),
            shape: entry.shape.clone(),
            // A JSON document is read as a whole.
            deferred: is_deferred && plan.source_format != SourceWord::TorchStateDictJson,
        });
        let groups = plan.manifest.groups.iter().map(|group| PlannedGroup {
            group_id: group.group_id.clone(),
            members: group.members.len(),
            applied_steps: group.applied_steps,
            residency: group.residency,
            residency_policy: group.residency_policy,
        });
        Self {
            source_format: plan.source_format.text().to_string(),
            plan_digest: plan.plan_digest.to_string(),
            entries: entries.collect(),
            groups: groups.collect(),
            warnings: plan.findings.iter().map(ReportedWarning::from).collect(),
        }
    }
}
