//! Exact integer deltas: the bitwise difference between the weights of two states (crate/FORMATS.md, "Exact delta").

mod delta_file;

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Refusal, Result, Word, word};
use crate::formats::{Digest, dtype_bits};
use crate::state::{
    Bytes, ModelIoArtifactReceipt, Moved, Operation, PortableModelStateDict, Tensor, byte_len,
};

/// Method by which a delta changes weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeltaKind {
    /// Stored words are added, wrapping: exact for every bit pattern.
    ExactInteger,
}

/// Difference between a base and a target: for each tensor that differs, target minus base, as unsigned words of the element's width. The words
/// are computed when they are read. A delta holds parameters and buffers; those that are equal in both are left out.
///
/// ```
/// use std::rc::Rc;
/// use tabtune::formats::MemorySource;
/// use tabtune::portable::ModelAdapterDelta;
///
/// let no_delta = Rc::new(MemorySource::new("delta.safetensors", *b"\x08\0\0\0\0\0\0\0{}      "));
/// assert_eq!(ModelAdapterDelta::open(no_delta).expect_err("no record").code(), "format.unsupported");
/// ```
#[derive(Debug, Clone)]
pub struct ModelAdapterDelta {
    /// Name given by its maker.
    pub adapter_id: String,
    /// Method by which it changes weights.
    pub kind: DeltaKind,
    /// Digest of the weights that it is applied to.
    pub base_weights_digest: Digest,
    /// Digest of the resulting weights.
    pub target_weights_digest: Digest,
    tensors: BTreeMap<String, DeltaTensor>,
    /// Receipt of the operation that made it, with its files.
    account: ModelIoArtifactReceipt,
}

/// The change of one tensor.
#[derive(Debug, Clone)]
struct DeltaTensor {
    /// dtype of the tensor.
    dtype: String,
    /// The words: U8, U16, U32 or U64 in the shape of the tensor; the bytes of blocks and of dtypes below one byte are one row.
    words: Tensor,
}

/// Returns the words of a tensor with these bytes, and their width in bytes.
fn words_of(tensor: &Tensor, bytes: Bytes) -> (Tensor, u64) {
    let (dtype, width) = match dtype_bits(&tensor.dtype) {
        Some(64) => ("U64", 8),
        Some(32) => ("U32", 4),
        Some(16) => ("U16", 2),
        _ => ("U8", 1),
    };
    let shape = match dtype_bits(&tensor.dtype) {
        Some(bits) if bits >= 8 => tensor.shape.clone(),
        _ => vec![byte_len(&tensor.dtype, &tensor.shape).unwrap_or(0)],
    };
    (Tensor::parameter(&tensor.name, dtype, &shape, bytes), width)
}

/// Iterates over the tensors that a delta changes: parameters and buffers.
fn weights(state: &PortableModelStateDict) -> impl Iterator<Item = (&String, &Tensor)> {
    state
        .tensors()
        .iter()
        .filter(|(_, entry)| !entry.is_state())
}

/// Returns the tensor with these words added, or subtracted.
fn moved(base: Tensor, words: Tensor, width: u64, subtract: bool) -> Tensor {
    let bytes = Bytes::Moved(Rc::new(Moved {
        base: base.clone(),
        words,
        width,
        subtract,
    }));
    base.with_bytes(bytes)
}

fn listed(mut refusals: Vec<Refusal>) -> Result<()> {
    refusals.sort_by(|a, b| a.subject.cmp(&b.subject));
    if refusals.is_empty() {
        Ok(())
    } else {
        Err(Error::Refused(refusals))
    }
}

fn mismatch(key: &str, expected: &Tensor, found: &Tensor) -> Refusal {
    let text = |tensor: &Tensor| format!("{} {:?}", tensor.dtype, tensor.shape);
    Refusal::new(word!("delta.tensor.mismatch"))
        .stage("read")
        .subject(key)
        .expected(text(expected))
        .found(text(found))
}

impl PortableModelStateDict {
    /// Computes the delta from this state's weights to those of `target`. Both are read for their digests, which show the tensors that differ.
    ///
    /// # Errors
    /// `delta.keys.differ` for each name that only one of them has; `delta.tensor.mismatch` for each tensor whose dtype or shape differs.
    pub async fn derive_adapter_delta(
        &self,
        target: &Self,
        adapter_id: &str,
    ) -> Result<ModelAdapterDelta> {
        let (base, other): (BTreeMap<_, _>, BTreeMap<_, _>) =
            (weights(self).collect(), weights(target).collect());
        let only = |key: &str, side: &str| {
            let refusal = Refusal::new(word!("delta.keys.differ"))
                .stage("read")
                .subject(key);
            refusal
                .expected("a tensor of both models")
                .found(format!("only in the {side}"))
        };
        let mut lonely: Vec<_> = base
            .keys()
            .filter(|key| !other.contains_key(*key))
            .map(|key| only(key, "base"))
            .collect();
        lonely.extend(
            other
                .keys()
                .filter(|key| !base.contains_key(*key))
                .map(|key| only(key, "target")),
        );
        listed(lonely)?;
        let pairs = || {
            let pairs = base.iter();
            pairs.filter_map(|(key, base)| Some((*key, *base, *other.get(*key)?)))
        };
        let differ = |a: &Tensor, b: &Tensor| a.dtype != b.dtype || a.shape != b.shape;
        let unequal = pairs().filter(|(_, base, target)| differ(base, target));
        listed(
            unequal
                .map(|(key, base, target)| mismatch(key, base, target))
                .collect(),
        )?;
        let (base_weights_digest, target_weights_digest) =
            (self.weights_digest().await?, target.weights_digest().await?);
        let mut tensors = BTreeMap::new();
        for (key, base, target) in pairs() {
            if base.digest().await? == target.digest().await? {
                continue;
            }
            let (words, width) = words_of(base, target.bytes().clone());
            let words = moved(words, base.clone(), width, true);
            let dtype = base.dtype.clone();
            tensors.insert(key.clone(), DeltaTensor { dtype, words });
        }
        let (adapter_id, kind) = (adapter_id.to_string(), DeltaKind::ExactInteger);
        let mut account = ModelIoArtifactReceipt::new(Operation::Derive);
        account.inputs = [self, target]
            .iter()
            .flat_map(|state| state.account.inputs.clone())
            .collect();
        account.tensors.admitted = tensors.keys().cloned().collect();
        Ok(ModelAdapterDelta {
            adapter_id,
            kind,
            base_weights_digest,
            target_weights_digest,
            tensors,
            account,
        })
    }

    /// Returns this state with the weights of the delta's target, which are compared with their digest. Groups stay; state tensors stay only
    /// with `keep_optimizer`, otherwise members have none.
    ///
    /// # Errors
    /// `delta.base.mismatch` if this state is not the delta's base; `delta.keys.differ` for tensors that it lacks, `delta.tensor.mismatch` for
    /// those of another dtype or shape; `delta.target.mismatch` if the result is not the target.
    pub async fn apply_adapter_delta(
        &self,
        delta: &ModelAdapterDelta,
        keep_optimizer: bool,
    ) -> Result<Self> {
        let base = (delta.base_weights_digest, word!("delta.base.mismatch"));
        let target = (delta.target_weights_digest, word!("delta.target.mismatch"));
        self.moved(delta, keep_optimizer, base, target, false).await
    }

    /// Returns this state with the weights of the delta's base: the reverse of [`Self::apply_adapter_delta`].
    ///
    /// # Errors
    /// `delta.target.mismatch` if this state is not the delta's target; `delta.base.mismatch` if the result is not its base; the others as
    /// there.
    pub async fn remove_adapter_delta(
        &self,
        delta: &ModelAdapterDelta,
        keep_optimizer: bool,
    ) -> Result<Self> {
        let base = (delta.base_weights_digest, word!("delta.base.mismatch"));
        let target = (delta.target_weights_digest, word!("delta.target.mismatch"));
        self.moved(delta, keep_optimizer, target, base, true).await
    }

    async fn moved(
        &self,
        delta: &ModelAdapterDelta,
        keep_optimizer: bool,
        from: (Digest, Word),
        to: (Digest, Word),
        subtract: bool,
    ) -> Result<Self> {
        let compare = |stated: (Digest, Word), found: Digest| {
            let refusal = || {
                Refusal::new(stated.1)
                    .stage("read")
                    .subject("weights")
                    .expected(stated.0)
                    .found(found)
            };
            if stated.0 == found {
                Ok(())
            } else {
                Err(Error::from(refusal()))
            }
        };
        compare(from, self.weights_digest().await?)?;
        let mut tensors = self.tensors().clone();
        let mut groups = self.groups().to_vec();
        if !keep_optimizer {
            tensors.retain(|_, entry| !entry.is_state());
            groups
                .iter_mut()
                .flat_map(|group| &mut group.members)
                .for_each(|member| member.state.clear());
        }
        let (mut absent, mut unequal) = (Vec::new(), Vec::new());
        for (key, DeltaTensor { dtype, words }) in &delta.tensors {
            let found = tensors.get_mut(key).filter(|entry| !entry.is_state());
            let Some(entry) = found else {
                absent.push(
                    Refusal::new(word!("delta.keys.differ"))
                        .stage("read")
                        .subject(key)
                        .found("only in the delta"),
                );
                continue;
            };
            let (expected, width) = words_of(entry, entry.bytes().clone());
            if entry.dtype != *dtype
                || expected.dtype != words.dtype
                || expected.shape != words.shape
            {
                unequal.push(mismatch(key, &expected, words));
                continue;
            }
            *entry = moved(entry.clone(), words.clone(), width, subtract);
        }
        absent.extend(unequal);
        listed(absent)?;
        let mut moved = Self::new(self.identity.clone(), self.source_format, tensors, groups)?;
        let mut account = ModelIoArtifactReceipt::new(if subtract {
            Operation::Remove
        } else {
            Operation::Apply
        });
        account.inputs = self
            .account
            .inputs
            .iter()
            .chain(&delta.account.inputs)
            .cloned()
            .collect();
        account.tensors.admitted = moved.tensors().keys().cloned().collect();
        account.tensors.dropped = self
            .tensors()
            .keys()
            .filter(|key| !moved.tensors().contains_key(*key))
            .cloned()
            .collect();
        account.groups.admitted = moved
            .groups()
            .iter()
            .map(|group| group.group_id.clone())
            .collect();
        moved.account = account;
        compare(to, moved.weights_digest().await?)?;
        Ok(moved)
    }
}

impl ModelAdapterDelta {
    /// Returns the names of the tensors that it changes, ascending.
    pub fn changed(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// Returns the sealed receipt of the operation that made it; a delta that was read from a file lists that file.
    ///
    /// # Errors
    /// `receipt.invalid` or `config.invalid` for contents that are no JSON.
    pub fn receipt(&self) -> Result<ModelIoArtifactReceipt> {
        self.account.clone().seal()
    }
}
