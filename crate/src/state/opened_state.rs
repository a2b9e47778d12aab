//! The headers of an artifact, read without any value, and their import as a state dict.

use std::collections::BTreeMap;

use serde::Serialize;

use super::account::{Input, imported};
use super::origin::SourceWord;
use super::state_dict::{PortableModelStateDict, is_step, unknown_tensor};
use super::survey::survey;
use super::tensor::Tensor;
use super::{
    CheckResult, Identity, ModelStateGroupAssignment, NonFinitePolicy, PortableModelImportRequest,
    Selected, SelectionReport, StateDigests, StateManifest, StatedDigests,
    TensorMaterializationPolicy, VerifyPolicy, byte_len, refuse_non_finite, select,
};
use crate::error::{Refusal, Result, Warning, refuse_all, word};
use crate::formats::{Digest, SourceSpan, count_non_finite, for_each_chunk, refuse_if, unreadable};

/// A file of an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OpenedFile {
    /// SHA-256 of the bytes that list the tensors: the header, or the whole of a JSON document.
    pub header_sha256: Digest,
    /// Size of the file.
    pub bytes: u64,
}

/// An artifact whose headers were read and checked.
///
/// ```
/// use tabtune::state::PortableModelImportRequest;
/// use tabtune::state::{OpenedState, PortableModelStateDict};
///
/// /// All of an artifact, read once and compared with the digests that it states.
/// async fn import(opened: OpenedState) -> tabtune::Result<PortableModelStateDict> {
///     Ok(opened.import(&PortableModelImportRequest::default()).await?.state_dict)
/// }
/// ```
#[derive(Debug, Clone)]
pub struct OpenedState {
    /// Model and checkpoint that the state belongs to.
    pub identity: Identity,
    /// Container of the artifact.
    pub source_format: SourceWord,
    /// Tensors by key; one whose type has an unknown size has no bytes. They are boxed, since the nodes of a map filled in ascending
    /// order stay half empty.
    pub tensors: BTreeMap<String, Box<Tensor>>,
    /// Groups; none if their state tensors are absent.
    pub groups: Vec<ModelStateGroupAssignment>,
    /// Manifest as it was read, with all groups.
    pub manifest: Option<StateManifest>,
    /// Digests that the artifact states.
    pub stated: StatedDigests,
    /// Digest of the weights that its optimizer file belongs to.
    pub optimizer_of: Option<Digest>,
    /// Results for its stated digests, if they were compared already.
    pub checks: Option<BTreeMap<&'static str, CheckResult>>,
    /// Files of the artifact, those with weights first.
    pub files: Vec<OpenedFile>,
    /// Files of the artifact, for receipts.
    pub(crate) inputs: Vec<Input>,
    /// Name of its first file, for messages.
    pub artifact: String,
    /// Unusual but allowed properties.
    pub warnings: Vec<Warning>,
}

/// A state dict that was imported, with the results of the import ([example](OpenedState)).
#[derive(Debug, Clone)]
pub struct ImportedState {
    /// The state dict; its tensors are read on demand.
    pub state_dict: PortableModelStateDict,
    /// The manifest of the whole artifact.
    pub manifest: Option<StateManifest>,
    /// Report of the tensors that were taken, left out and renamed.
    pub report: SelectionReport,
    /// Result for each digest that the artifact may state.
    pub checks: BTreeMap<&'static str, CheckResult>,
    /// The files of the artifact.
    pub files: Vec<OpenedFile>,
    /// Unusual but allowed properties.
    pub warnings: Vec<Warning>,
}

impl OpenedState {
    /// Creates the state of an artifact without tensors, which are added as they are found.
    pub(crate) fn new(identity: Identity, source_format: SourceWord, artifact: &str) -> Self {
        Self {
            identity,
            source_format,
            tensors: BTreeMap::new(),
            groups: Vec::new(),
            manifest: None,
            stated: StatedDigests::default(),
            optimizer_of: None,
            checks: None,
            files: Vec::new(),
            inputs: Vec::new(),
            artifact: artifact.to_string(),
            warnings: Vec::new(),
        }
    }

    /// Imports the part that `request` asks for. Each admitted tensor is read once, by pieces, unless only headers are to be checked.
    ///
    /// # Errors
    /// `select.*`, `remap.*` and `state.*`; with full verification also `digest.mismatch`, `manifest.optimizer.mismatch`,
    /// `safetensors.payload.bool` and, if the request refuses them, `model.non-finite`.
    pub async fn import(&self, request: &PortableModelImportRequest) -> Result<ImportedState> {
        let selected = self.select(request)?;
        self.materialize(selected, request, false).await
    }

    /// Applies the selection of `request` to the headers.
    pub(crate) fn select(&self, request: &PortableModelImportRequest) -> Result<Selected> {
        let manifests = self
            .tensors
            .iter()
            .map(|(key, tensor)| (key.clone(), tensor.manifest()))
            .collect();
        select(&manifests, &self.groups, request, &self.artifact)
    }

    /// Reads every tensor of a selection, and refuses those with NaN or infinite values.
    pub(crate) fn check_finite(&self, selected: &Selected) -> Result<()> {
        let mut counts = Vec::new();
        for entry in &selected.entries {
            let tensor = self.tensor(&entry.source_key)?;
            let mut count = 0;
            let mut add = |piece: &[u8]| {
                count += count_non_finite(&tensor.dtype, piece);
                Ok(())
            };
            let unit = tensor.encoding().map_or(8, |encoding| encoding.unit().0);
            match (tensor.in_memory(), tensor.stored()) {
                (Some(bytes), _) => add(bytes)?,
                (
                    None,
                    Some(SourceSpan {
                        source,
                        begin,
                        bytes,
                    }),
                ) => {
                    for_each_chunk(source.as_ref(), *begin, begin + bytes, unit, add)?;
                }
                (None, None) => {}
            }
            counts.push((entry.tensor.state_key.clone(), count));
        }
        refuse_non_finite(&counts).map_err(|error| error.in_file(&self.artifact))
    }

    /// The tensor `key`, whose bytes can be read.
    pub(crate) fn tensor(&self, key: &str) -> Result<&Tensor> {
        let Some(tensor) = self.tensors.get(key) else {
            return Err(unknown_tensor(key).of(&self.artifact).into());
        };
        if byte_len(&tensor.dtype, &tensor.shape).is_none() {
            let file = tensor.file().unwrap_or_default();
            return Err(unreadable(&tensor.dtype, key, file).into());
        }
        Ok(tensor)
    }

    /// Creates the state dict of a selection; with `hold` all its values stay in memory.
    pub(crate) async fn materialize(
        &self,
        selected: Selected,
        request: &PortableModelImportRequest,
        hold: bool,
    ) -> Result<ImportedState> {
        let mut tensors = BTreeMap::new();
        let mut sources = BTreeMap::new();
        for entry in selected.entries {
            let mut source = self.tensor(&entry.source_key)?.clone();
            // The checks of the groups read steps, which are eight bytes each.
            let step = is_step(&entry.tensor) && source.len() == STEP_BYTES;
            if (hold || step) && source.in_memory().is_none() {
                source = source.held().await?;
            }
            let key = entry.tensor.state_key.clone();
            tensors.insert(key, source.clone().described(entry.tensor));
            sources.insert(entry.source_key, source);
        }
        let state_dict = PortableModelStateDict::new(
            self.identity.clone(),
            self.source_format,
            tensors,
            selected.groups,
        );
        let mut state_dict = state_dict.map_err(|error| error.in_file(&self.artifact))?;
        let mut warnings = self.warnings.clone();
        warnings.extend(selected.warnings);
        let checks = match request.verify {
            VerifyPolicy::Full => {
                read_values(&state_dict, request, &self.artifact, &mut warnings).await?;
                self.verify(&sources).await?
            }
            VerifyPolicy::Header => self
                .checks
                .clone()
                .unwrap_or_else(|| NAMES.map(|name| (name, CheckResult::Skipped)).into()),
        };
        // With deferred values, inputs are not read a second time for their checksums.
        let eager = request.materialization_policy == TensorMaterializationPolicy::Eager;
        let whole = request.verify == VerifyPolicy::Full && eager;
        state_dict.account = imported(&self.inputs, &selected.report, &warnings, whole)?;
        Ok(ImportedState {
            state_dict,
            manifest: self.manifest.clone(),
            report: selected.report,
            checks,
            files: self.files.clone(),
            warnings,
        })
    }

    /// Compares the stated digests with those of the values that were read, under the names of the source.
    async fn verify(
        &self,
        read: &BTreeMap<String, Tensor>,
    ) -> Result<BTreeMap<&'static str, CheckResult>> {
        let mut leaves = BTreeMap::new();
        for (key, tensor) in read {
            leaves.insert(key.clone(), (tensor.role, tensor.leaf().await?));
        }
        let manifest = self.manifest.as_ref();
        let groups = manifest.map_or(&self.groups, |manifest| &manifest.groups);
        let digests = StateDigests::of(&leaves, groups)?;
        let whole = |state: bool| {
            let listed = self.manifest.iter().flat_map(|manifest| &manifest.tensors);
            let listed = listed.map(|(key, record)| (key, record.role));
            let own = self.tensors.iter().map(|(key, tensor)| (key, tensor.role));
            let mut of_part = listed
                .chain(own)
                .filter(|(_, role)| role.is_state() == state);
            of_part.all(|(key, _)| read.contains_key(key))
        };
        let whole = (whole(false), whole(true));
        let stated = self.optimizer_of.unwrap_or(digests.weights);
        refuse_if(whole.0 && stated != digests.weights, || {
            Refusal::new(word!("manifest.optimizer.mismatch"))
                .stage("read")
                .of(&self.artifact)
                .subject("weights")
                .expected(stated)
                .found(digests.weights)
        })?;
        match &self.checks {
            Some(checks) => Ok(checks.clone()),
            None => digests
                .verify(&self.stated, whole)
                .map_err(|error| error.in_file(&self.artifact)),
        }
    }
}

/// Number of bytes of a step: one U64.
const STEP_BYTES: u64 = 8;

/// Names of the digests that an artifact may state about its state.
const NAMES: [&str; 4] = ["weights", "optimizer", "assignment", "state"];

/// Reads every tensor once, and checks its values.
async fn read_values(
    state: &PortableModelStateDict,
    request: &PortableModelImportRequest,
    artifact: &str,
    warnings: &mut Vec<Warning>,
) -> Result<()> {
    let (mut counts, mut refusals) = (Vec::new(), Vec::new());
    for (key, tensor) in state.tensors() {
        let found = survey(tensor).await?;
        if found.bad_bool {
            let refusal = Refusal::new(word!("safetensors.payload.bool")).stage("read");
            refusals.push(refusal.of(artifact).subject(key).expected("0 or 1"));
        }
        if found.non_finite > 0 {
            counts.push((key.clone(), found.non_finite));
        }
    }
    refuse_all(refusals)?;
    match request.non_finite {
        NonFinitePolicy::Refuse => {
            refuse_non_finite(&counts).map_err(|error| error.in_file(artifact))
        }
        NonFinitePolicy::Warn => {
            let warning = |(key, _): &(String, u64)| Warning::new(word!("tensor.non-finite"), key);
            warnings.extend(counts.iter().map(warning));
            Ok(())
        }
    }
}
