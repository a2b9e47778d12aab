//! Exact integer deltas: the bitwise difference between the weights of two states (crate/FORMATS.md, "Exact delta").

mod delta_file;

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::error::{Refusal, Result, Word, refuse_all, word};
use crate::formats::{Digest, dtype_bits};
use crate::state::{
    Bytes, ModelIoArtifactReceipt, Moved, Operation, PortableModelStateDict, Tensor, byte_len,
    group_ids,
};

/// Difference between a base and a target: for each tensor that differs, target minus base, as unsigned words of the
/// element's width. Words are added wrapping, which is exact for every bit pattern. They are computed when they are
/// read. A delta holds parameters and buffers; those that are equal in both are left out.
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

/// The words of a tensor with these bytes, and their width in bytes.
fn words_of(tensor: &Tensor, bytes: Bytes) -> (Tensor, u64) {
    let bits = dtype_bits(&tensor.dtype);
    let (dtype, width) = match bits {
        Some(64) => ("U64", 8),
        Some(32) => ("U32", 4),
        Some(16) => ("U16", 2),
        _ => ("U8", 1),
    };
    let shape = match bits {
        Some(8..) => tensor.shape.clone(),
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

/// The tensor with these words added, or subtracted.
fn moved(base: Tensor, words: Tensor, width: u64, subtract: bool) -> Tensor {
    let bytes = Bytes::Moved(Rc::new(Moved {
        base: base.clone(),
        words,
        width,
        subtract,
    }));
    base.with_bytes(bytes)
}

/// Fails with these refusals in the order of their subjects, if there are any.
fn refuse_sorted(mut refusals: Vec<Refusal>) -> Result<()> {
    refusals.sort_by(|a, b| a.subject.cmp(&b.subject));
    refuse_all(refusals)
}

fn refusal(code: Word, key: &str) -> Refusal {
    Refusal::new(code).stage("read").subject(key)
}

fn mismatch(key: &str, expected: &Tensor, found: &Tensor) -> Refusal {
    let text = |tensor: &Tensor| format!("{} {:?}", tensor.dtype, tensor.shape);
    refusal(word!("delta.tensor.mismatch"), key)
        .expected(text(expected))
        .found(text(found))
}

/// Refuses weights that do not have the digest that the delta states.
async fn compare(state: &PortableModelStateDict, stated: Digest, code: Word) -> Result<()> {
    let found = state.weights_digest().await?;
    if stated == found {
        return Ok(());
    }
    Err(refusal(code, "weights")
        .expected(stated)
        .found(found)
        .into())
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
        let (mut base, mut lonely, mut unequal) =
            (BTreeMap::from_iter(weights(self)), Vec::new(), Vec::new());
        let only_in = |side: &str, key: &str| {
            refusal(word!("delta.keys.differ"), key)
                .expected("a tensor of both models")
                .found(format!("only in the {side}"))
        };
        let mut pairs = Vec::new();
        for (key, target) in weights(target) {
            match base.remove(key) {
                None => lonely.push(only_in("target", key)),
                Some(base) if (&base.dtype, &base.shape) != (&target.dtype, &target.shape) => {
                    unequal.push(mismatch(key, base, target));
                }
                Some(base) => pairs.push((key, base, target)),
            }
        }
        lonely.extend(base.keys().map(|key| only_in("base", key)));
        refuse_sorted(lonely)?;
        refuse_sorted(unequal)?;
        let (base_weights_digest, target_weights_digest) =
            (self.weights_digest().await?, target.weights_digest().await?);
        let mut tensors = BTreeMap::new();
        for (key, base, target) in pairs {
            if base.digest().await? == target.digest().await? {
                continue;
            }
            let (words, width) = words_of(base, target.bytes().clone());
            let words = moved(words, base.clone(), width, true);
            let dtype = base.dtype.clone();
            tensors.insert(key.clone(), DeltaTensor { dtype, words });
        }
        let mut account = ModelIoArtifactReceipt::new(Operation::Derive);
        account.inputs = [self, target]
            .iter()
            .flat_map(|state| state.account.inputs.clone())
            .collect();
        account.tensors.admitted = tensors.keys().cloned().collect();
        Ok(ModelAdapterDelta {
            adapter_id: adapter_id.to_string(),
            base_weights_digest,
            target_weights_digest,
            tensors,
            account,
        })
    }

    /// Creates this state with the weights of the delta's target, which are compared with their digest. Groups stay; state tensors stay only
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
        self.moved(delta, keep_optimizer, false).await
    }

    /// Creates this state with the weights of the delta's base: the reverse of [`Self::apply_adapter_delta`].
    ///
    /// # Errors
    /// `delta.target.mismatch` if this state is not the delta's target; `delta.base.mismatch` if the result is not its base; the others as
    /// there.
    pub async fn remove_adapter_delta(
        &self,
        delta: &ModelAdapterDelta,
        keep_optimizer: bool,
    ) -> Result<Self> {
        self.moved(delta, keep_optimizer, true).await
    }

    async fn moved(
        &self,
        delta: &ModelAdapterDelta,
        keep_optimizer: bool,
        subtract: bool,
    ) -> Result<Self> {
        let base = (delta.base_weights_digest, word!("delta.base.mismatch"));
        let target = (delta.target_weights_digest, word!("delta.target.mismatch"));
        let (from, to, operation) = if subtract {
            (target, base, Operation::Remove)
        } else {
            (base, target, Operation::Apply)
        };
        compare(self, from.0, from.1).await?;
        let mut tensors = self.tensors().clone();
        let mut groups = self.groups().to_vec();
        if !keep_optimizer {
            tensors.retain(|_, tensor| !tensor.is_state());
            let members = groups.iter_mut().flat_map(|group| &mut group.members);
            members.for_each(|member| member.state.clear());
        }
        delta.add_to(&mut tensors, subtract)?;
        let mut moved = Self::new(self.identity.clone(), self.source_format, tensors, groups)?;
        let mut account = ModelIoArtifactReceipt::new(operation);
        account.inputs = [&self.account.inputs[..], &delta.account.inputs].concat();
        account.tensors.admitted = moved.tensors().keys().cloned().collect();
        let dropped = self.tensors().keys();
        let dropped = dropped.filter(|key| !moved.tensors().contains_key(*key));
        account.tensors.dropped = dropped.cloned().collect();
        account.groups.admitted = group_ids(moved.groups());
        moved.account = account;
        compare(&moved, to.0, to.1).await?;
        Ok(moved)
    }
}

impl ModelAdapterDelta {
    /// Adds its words to the tensors that it changes, or subtracts them.
    fn add_to(&self, tensors: &mut BTreeMap<String, Tensor>, subtract: bool) -> Result<()> {
        let (mut absent, mut unequal) = (Vec::new(), Vec::new());
        for (key, DeltaTensor { dtype, words }) in &self.tensors {
            let found = tensors.get_mut(key).filter(|tensor| !tensor.is_state());
            let Some(tensor) = found else {
                let found = "only in the delta";
                absent.push(refusal(word!("delta.keys.differ"), key).found(found));
                continue;
            };
            let (own, width) = words_of(tensor, tensor.bytes().clone());
            let is_same =
                tensor.dtype == *dtype && (&own.dtype, &own.shape) == (&words.dtype, &words.shape);
            if is_same {
                *tensor = moved(tensor.clone(), words.clone(), width, subtract);
            } else {
                unequal.push(mismatch(key, &own, words));
            }
        }
        refuse_sorted([absent, unequal].concat())
    }

    /// The names of the tensors that it changes, ascending.
    pub fn changed(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// The sealed receipt of the operation that made it; a delta that was read from a file lists that file.
    ///
    /// # Errors
    /// `receipt.invalid` or `config.invalid` for contents that are no JSON.
    pub fn receipt(&self) -> Result<ModelIoArtifactReceipt> {
        self.account.clone().seal()
    }
}
