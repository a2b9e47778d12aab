//! The canonical form of a state: every container is imported into it and exported from it.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use super::account::account;
use super::origin::SourceWord;
use super::tensor::Tensor;
use super::tensor_checks::{broken_row, wrong_key, wrong_length};
use super::{
    Identity, ModelIoArtifactReceipt, ModelStateGroupAssignment, ModelStateTensorManifest,
    Operation, PortableModelImportRequest, Selected, SelectionReport, StateDigests, StateManifest,
    StateWord, TensorRecord, TensorRole, check_groups, select, weights_digest,
};
use crate::error::{Error, Refusal, Result, Warning, refuse_all, word};
use crate::formats::{Digest, reserved, too_large, unreadable};

/// File name of parameters and buffers.
pub(crate) const MODEL_FILE: &str = "model.safetensors";
/// File name of state tensors.
pub(crate) const OPTIMIZER_FILE: &str = "optimizer.safetensors";
/// File name of the tensors of a JSON document: the field that holds them.
pub(crate) const JSON_FILE: &str = "state_dict";

/// Named tensors and the groups that train them, independent of any container, file or device.
///
/// ```
/// use std::collections::BTreeMap;
/// use tabtune::state::{Bytes, Identity, PortableModelStateDict, SourceWord, Tensor};
///
/// let of = |bytes: usize| {
///     let tensor = Tensor::parameter("head.weight", "F32", &[2], Bytes::host(vec![0; bytes]));
///     let tensors = BTreeMap::from([(tensor.name.clone(), tensor)]);
///     PortableModelStateDict::new(Identity::default(), SourceWord::Tabtune, tensors, Vec::new())
/// };
/// assert_eq!(of(8)?.traversal_records().count(), 1);
/// let refused = of(7);
/// assert_eq!(refused.expect_err("7 bytes").code(), "state.tensor.length");
/// # Ok::<(), tabtune::Error>(())
/// ```
#[derive(Clone)]
pub struct PortableModelStateDict {
    /// Model and checkpoint that the state belongs to.
    pub identity: Identity,
    /// Container that it was read from.
    pub source_format: SourceWord,
    tensors: BTreeMap<String, Tensor>,
    groups: Vec<ModelStateGroupAssignment>,
    digests: OnceCell<StateDigests>,
    /// Receipt of the operation that made it, with its files.
    pub(crate) account: ModelIoArtifactReceipt,
}

impl fmt::Debug for PortableModelStateDict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("PortableModelStateDict");
        out.field("identity", &self.identity)
            .field("source_format", &self.source_format);
        out.field("tensors", &self.tensors.len())
            .field("groups", &self.groups.len())
            .finish_non_exhaustive()
    }
}

/// A part of a state dict under its new names ([example](crate::portable)).
#[derive(Debug, Clone)]
pub struct SelectedStateDict {
    /// The part.
    pub state_dict: PortableModelStateDict,
    /// Report of the tensors that were taken, left out and renamed.
    pub report: SelectionReport,
    /// Warnings of the selection.
    pub warnings: Vec<Warning>,
}

impl PortableModelStateDict {
    /// Creates a state after checking tensors and groups; no value is read except steps that are in memory.
    ///
    /// # Errors
    /// All findings at once: `state.key.mismatch` (a tensor under another key than it states, or an empty or too long one),
    /// `state.tensor.length` (another number of bytes than dtype and shape require), `state.tensor.block-row` (a row that is no whole number of
    /// blocks), and the errors of [`check_groups`].
    pub fn new(
        identity: Identity,
        source_format: SourceWord,
        tensors: BTreeMap<String, Tensor>,
        groups: Vec<ModelStateGroupAssignment>,
    ) -> Result<Self> {
        let mut refusals = Vec::new();
        for fault in [wrong_key, wrong_length, broken_row] {
            refusals.extend(tensors.iter().filter_map(|(key, entry)| fault(key, entry)));
        }
        let manifests: BTreeMap<_, _> = tensors
            .iter()
            .map(|(key, entry)| (key.clone(), entry.manifest()))
            .collect();
        let step_of = |key: &str| {
            let bytes = tensors.get(key)?.in_memory()?;
            Some(u64::from_le_bytes(bytes.as_ref().try_into().ok()?))
        };
        match check_groups(&manifests, &groups, &step_of, "") {
            Err(Error::Refused(list)) => refusals.extend(list),
            other => other?,
        }
        refuse_all(refusals)?;
        let account = ModelIoArtifactReceipt::new(Operation::Export);
        Ok(Self {
            identity,
            source_format,
            tensors,
            groups,
            digests: OnceCell::new(),
            account,
        })
    }

    /// The tensors by key: parameters, buffers, and those that optimizers keep.
    pub fn tensors(&self) -> &BTreeMap<String, Tensor> {
        &self.tensors
    }

    /// The groups that train tensors, in the order in which they were given.
    pub fn groups(&self) -> &[ModelStateGroupAssignment] {
        &self.groups
    }

    /// Iterates over the descriptions of the tensors, in key order.
    pub fn traversal_records(&self) -> impl Iterator<Item = ModelStateTensorManifest> {
        self.tensors.values().map(Tensor::manifest)
    }

    /// Creates the manifest of this state. Facts that a state dict does not have (base, tokenizer, contract, preferred formats) are left empty.
    pub fn manifest(&self) -> StateManifest {
        manifest_of(&self.identity, self.traversal_records(), &self.groups)
    }

    /// Reads the tensor `key`: its description, and all its stored bytes.
    ///
    /// # Errors
    /// `plan.tensor.unknown` if there is none.
    pub async fn tensor(&self, key: &str) -> Result<(ModelStateTensorManifest, Rc<[u8]>)> {
        let tensor = self.entry(key)?;
        Ok((tensor.manifest(), tensor.all_bytes().await?))
    }

    /// Reads the values of the tensor `key`, widened or narrowed to f32, row-major; blocks are dequantised.
    ///
    /// # Errors
    /// `plan.tensor.unknown` if there is none; `model.tensor.dtype` or `gguf.tensor.type-unsupported` if its dtype is no float that can be
    /// read.
    pub async fn dense_f32(&self, key: &str) -> Result<Vec<f32>> {
        let tensor = self.entry(key)?;
        let encoding = tensor.encoding();
        let encoding = encoding.ok_or_else(|| unreadable(&tensor.dtype, key, ""))?;
        let mut values = tensor.numel().and_then(reserved).ok_or_else(|| {
            too_large()
                .stage("read")
                .subject(key)
                .found(format!("{:?}", tensor.shape))
        })?;
        tensor
            .for_each_whole(encoding.unit().0, |piece| {
                encoding.decode(piece, &mut values);
                Ok(())
            })
            .await?;
        Ok(values)
    }

    pub(crate) fn entry(&self, key: &str) -> Result<&Tensor> {
        let tensor = self.tensors.get(key);
        tensor.ok_or_else(|| unknown_tensor(key).into())
    }

    /// Selects the part that `request` asks for, under its new names. Only groups and names are used: no value is read.
    ///
    /// # Errors
    /// `select.*` and `remap.*`, all findings at once.
    pub fn select_and_remap(
        &self,
        request: &PortableModelImportRequest,
    ) -> Result<SelectedStateDict> {
        let manifests = self
            .tensors
            .iter()
            .map(|(key, entry)| (key.clone(), entry.manifest()))
            .collect();
        let Selected {
            entries,
            groups,
            report,
            warnings,
        } = select(&manifests, &self.groups, request, "")?;
        let mut tensors = BTreeMap::new();
        for selected in entries {
            let source = self.entry(&selected.source_key)?.clone();
            let key = selected.tensor.state_key.clone();
            tensors.insert(key, source.described(selected.tensor));
        }
        let mut state_dict = Self::new(self.identity.clone(), self.source_format, tensors, groups)?;
        state_dict.account = ModelIoArtifactReceipt {
            inputs: self.account.inputs.clone(),
            ..account(Operation::Select, &report, &warnings)
        };
        Ok(SelectedStateDict {
            state_dict,
            report,
            warnings,
        })
    }

    /// Computes the digests; each tensor whose digest is not known yet is read once, by pieces.
    ///
    /// # Errors
    /// Errors of reading, and those of [`StateDigests::of`].
    pub async fn digests(&self) -> Result<StateDigests> {
        if let Some(known) = self.digests.get() {
            return Ok(*known);
        }
        let mut leaves = BTreeMap::new();
        for (key, entry) in &self.tensors {
            leaves.insert(key.clone(), (entry.role, entry.leaf().await?));
        }
        let digests = StateDigests::of(&leaves, &self.groups)?;
        // A second result is that of the same tensors.
        let _ = self.digests.set(digests);
        Ok(digests)
    }

    /// Computes the digest of parameters and buffers alone; state tensors are not read for it.
    ///
    /// # Errors
    /// Errors of reading.
    pub async fn weights_digest(&self) -> Result<Digest> {
        let mut leaves = BTreeMap::new();
        for (key, entry) in self.tensors.iter().filter(|(_, entry)| !entry.is_state()) {
            leaves.insert(key.clone(), entry.leaf().await?);
        }
        Ok(weights_digest(&leaves))
    }
}

/// Refusal of a key that no tensor has.
pub(super) fn unknown_tensor(key: &str) -> Refusal {
    Refusal::new(word!("plan.tensor.unknown"))
        .stage("read")
        .subject(key)
}

/// Creates the manifest of these tensors and groups.
pub(crate) fn manifest_of(
    identity: &Identity,
    tensors: impl Iterator<Item = ModelStateTensorManifest>,
    groups: &[ModelStateGroupAssignment],
) -> StateManifest {
    let record = |tensor: ModelStateTensorManifest| {
        let file = match tensor.role {
            TensorRole::State(_) => OPTIMIZER_FILE,
            _ => MODEL_FILE,
        };
        (tensor.state_key.clone(), TensorRecord::new(tensor, file))
    };
    StateManifest::new(
        identity.clone(),
        tensors.map(record).collect(),
        groups.to_vec(),
    )
}

/// True if a tensor is the number of updates of a parameter.
pub(crate) fn is_step(tensor: &ModelStateTensorManifest) -> bool {
    tensor.role == TensorRole::State(StateWord::Step)
}
