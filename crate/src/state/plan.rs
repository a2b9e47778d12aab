//! The plan of an import: the bytes that would be read and their positions, before they are read.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::Serialize;
use serde_json::json;

use super::opened_state::{ImportedState, OpenedState};
use super::origin::SourceWord;
use super::state_dict::{JSON_FILE, manifest_of, unknown_tensor};
use super::{
    DocumentKind, ModelStateTensorManifest, PortableModelImportRequest, Selected, StateManifest,
    TensorMaterializationPolicy, document_digest,
};
use crate::error::{Result, Warning};
use crate::formats::Digest;

/// Position of the bytes of an admitted tensor ([example](PortableModelBundleImportPlan)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanEntry {
    /// Name in the source.
    pub source_key: String,
    /// Name of its file.
    pub file: String,
    /// Position of the first byte in the file.
    pub begin: u64,
    /// Position one past the last byte.
    pub end: u64,
    /// dtype as stored.
    pub dtype: String,
    /// Row-major shape.
    pub shape: Vec<u64>,
}

/// A selection from an artifact whose headers were read. If it is deferred, no value is read before one tensor or all of them are requested; if
/// it is eager, all of them are read at once and held. Both give the same state.
///
/// ```
/// use tabtune::state::PortableModelImportRequest;
/// use tabtune::state::{OpenedState, PortableModelBundleImportPlan};
///
/// /// The bytes of one tensor of an artifact.
/// async fn head(opened: OpenedState, request: PortableModelImportRequest) -> tabtune::Result<Vec<u8>> {
///     let plan = PortableModelBundleImportPlan::new(opened, request).await?;
///     let (_, bytes) = plan.materialize_tensor("lm_head.weight").await?;
///     Ok(bytes.to_vec())
/// }
/// ```
#[derive(Debug, Clone)]
pub struct PortableModelBundleImportPlan {
    /// Container of the artifact.
    pub source_format: SourceWord,
    /// Time at which values are read.
    pub policy: TensorMaterializationPolicy,
    /// Manifest of the admitted tensors, under their new names.
    pub manifest: StateManifest,
    /// Admitted tensors, by their new names.
    pub entries: BTreeMap<String, PlanEntry>,
    /// Unusual but allowed properties.
    pub findings: Vec<Warning>,
    /// Digest of source, policy, request, headers and entries.
    pub plan_digest: Digest,
    opened: OpenedState,
    request: PortableModelImportRequest,
    selected: Selected,
    held: Option<Box<ImportedState>>,
}

impl PortableModelBundleImportPlan {
    /// Plans `request` for an artifact.
    ///
    /// # Errors
    /// `select.*` and `remap.*`; if it is eager, the errors of [`OpenedState::import`].
    pub async fn new(opened: OpenedState, request: PortableModelImportRequest) -> Result<Self> {
        let selected = opened.select(&request)?;
        let mut entries = BTreeMap::new();
        for entry in &selected.entries {
            let Some(tensor) = opened.tensors.get(&entry.source_key) else {
                continue;
            };
            let key = entry.tensor.state_key.clone();
            // Values in memory are those of a JSON document, in which they have no position.
            let begin = tensor.stored().map_or(0, |span| span.begin);
            let end = begin + tensor.len();
            let file = tensor.file().unwrap_or(JSON_FILE).to_string();
            let entry = PlanEntry {
                source_key: entry.source_key.clone(),
                file,
                begin,
                end,
                dtype: entry.tensor.dtype.clone(),
                shape: entry.tensor.shape.clone(),
            };
            entries.insert(key, entry);
        }
        let admitted = selected.entries.iter().map(|entry| entry.tensor.clone());
        let mut manifest = manifest_of(&opened.identity, admitted, &selected.groups);
        if let Some(whole) = &opened.manifest {
            manifest.base.clone_from(&whole.base);
            manifest.tokenizer.clone_from(&whole.tokenizer);
            manifest
                .profile_contract
                .clone_from(&whole.profile_contract);
            manifest
                .preferred_formats
                .clone_from(&whole.preferred_formats);
        }
        let (source_format, policy) = (opened.source_format, request.materialization_policy);
        let document = json!({
            "source_format": source_format,
            "policy": policy,
            "request": request.in_order(),
            "files": opened.files,
            "entries": entries,
        });
        let plan_digest = document_digest(DocumentKind::Plan, &document)?;
        let mut findings = opened.warnings.clone();
        findings.extend(selected.warnings.iter().cloned());
        let held = match policy {
            TensorMaterializationPolicy::Eager => Some(Box::new(
                opened.materialize(selected.clone(), &request, true).await?,
            )),
            TensorMaterializationPolicy::Deferred => None,
        };
        Ok(Self {
            source_format,
            policy,
            manifest,
            entries,
            findings,
            plan_digest,
            opened,
            request,
            selected,
            held,
        })
    }

    /// Number of admitted tensors.
    pub fn tensor_count(&self) -> usize {
        self.entries.len()
    }

    /// Number of admitted tensors whose values were not read.
    pub fn deferred_tensor_count(&self) -> usize {
        if self.held.is_some() {
            0
        } else {
            self.entries.len()
        }
    }

    /// Describes the plan in lines that are equal for equal plans.
    pub fn stable_signature_lines(&self) -> Vec<String> {
        let policy = match self.policy {
            TensorMaterializationPolicy::Eager => "eager",
            TensorMaterializationPolicy::Deferred => "deferred",
        };
        let mut lines = vec![
            format!("source_format={}", self.source_format.text()),
            format!("policy={policy}"),
            format!("plan_digest={}", self.plan_digest),
        ];
        let deferred = self.held.is_none();
        lines.extend(self.entries.iter().map(|(target, entry)| {
            format!("{target}|source={}|deferred={deferred}", entry.source_key)
        }));
        lines
    }

    /// Reads one tensor, by its new name: exactly its bytes are read.
    ///
    /// # Errors
    /// `plan.tensor.unknown` for another name; `gguf.tensor.type-unknown` for a type of unknown size.
    pub async fn materialize_tensor(
        &self,
        target: &str,
    ) -> Result<(ModelStateTensorManifest, Rc<[u8]>)> {
        let mut entries = self.selected.entries.iter();
        let entry = entries
            .find(|entry| entry.tensor.state_key == target)
            .ok_or_else(|| unknown_tensor(target).of(&self.opened.artifact))?;
        if let Some(held) = &self.held {
            return held.state_dict.tensor(target).await;
        }
        let source = self.opened.tensor(&entry.source_key)?;
        Ok((entry.tensor.clone(), source.all_bytes().await?))
    }

    /// Imports all admitted tensors: each is read once, checked, and compared with the stated digests.
    ///
    /// # Errors
    /// The errors of [`OpenedState::import`].
    pub async fn materialize_bundle(&self) -> Result<ImportedState> {
        match &self.held {
            Some(held) => Ok(held.as_ref().clone()),
            None => {
                self.opened
                    .materialize(self.selected.clone(), &self.request, false)
                    .await
            }
        }
    }
}
