//! Writes a safetensors file as a stream: its header, and the values of its tensors from wherever they are.

use std::collections::BTreeMap;

use super::checksums::TensorSpan;
use super::segment::{Leaves, Segment};
use super::stream::FileStream;
use super::tensor_hasher::TensorHasher;
use crate::error::{Error, Refusal, Result, word};
use crate::formats::{SafetensorsHeader, TensorType, safetensors_header};
use crate::state::{Encoded, Reordering, Tensor, weights_digest};

/// Metadata key of an optimizer file that holds the digest of the weights that the state belongs to.
pub(crate) const OPTIMIZER_WEIGHTS: &str = "tabtune.weights";

/// Returns the type of a plain dtype word.
fn plain(word: &str) -> Option<TensorType> {
    [TensorType::F32, TensorType::F16, TensorType::Bf16]
        .into_iter()
        .find(|one| one.ggml().dtype() == word)
}

impl Tensor {
    /// Returns the type in which it is encoded if `to` is requested; `None` if its bytes are written unchanged. State tensors always are.
    fn encoded_as(&self, to: Option<TensorType>) -> Option<TensorType> {
        let same = to.is_none_or(|to| to.ggml().dtype() == self.dtype);
        let as_it_is = self.is_state() || same && self.merged().is_none();
        (!as_it_is).then(|| to.or_else(|| plain(&self.dtype)).unwrap_or(TensorType::F32))
    }

    /// Returns its dtype in a safetensors file if `to` is requested.
    pub(crate) fn dtype_as(&self, to: Option<TensorType>) -> String {
        self.encoded_as(to)
            .map_or_else(|| self.dtype.clone(), |to| to.ggml().dtype())
    }
}

/// Returns the tensor as it is written.
fn written(tensor: Tensor, to: Option<TensorType>) -> Tensor {
    match tensor.encoded_as(to) {
        None => tensor,
        Some(to) => {
            let (name, shape) = (tensor.name.clone(), tensor.shape.clone());
            Tensor::encoded(&name, &shape, Encoded::new(tensor, Reordering::Same, to))
        }
    }
}

/// Refuses blocks that would be written as they are stored; all are listed.
pub(crate) fn refuse_blocks(tensors: &[Tensor]) -> Result<()> {
    let blocks = tensors.iter().filter(|tensor| tensor.is_blocks());
    let refuse = |tensor: &Tensor| {
        let refusal = Refusal::new(word!("export.safetensors.quantised"))
            .of("safetensors")
            .subject(&tensor.name);
        refusal
            .expected("a dtype of single values")
            .found(&tensor.dtype)
            .hint("dequantise by asking for f32, bf16 or f16")
    };
    let refusals: Vec<Refusal> = blocks.map(refuse).collect();
    if refusals.is_empty() {
        Ok(())
    } else {
        Err(Error::Refused(refusals))
    }
}

#[doc(hidden)]
impl FileStream {
    /// Adds a safetensors file of `tensors`, each in its own dtype, with `metadata`.
    ///
    /// # Errors
    /// The errors of [`Self::push_safetensors_as`].
    pub fn push_safetensors(
        &mut self,
        name: &str,
        tensors: Vec<Tensor>,
        metadata: &BTreeMap<String, String>,
    ) -> Result<()> {
        self.push_safetensors_as(name, tensors, None, Contents::Weights, metadata)
    }

    /// Adds a safetensors file of `tensors`, which are `contents`, with `metadata`. All tensors except those of optimizers are written as `to`,
    /// one of F32, F16 and BF16, or without it as they are stored.
    ///
    /// # Errors
    /// `export.safetensors.quantised` for blocks without `to`, `export.name.invalid` for a name that the format cannot hold. While the stream
    /// is read, `export.overflow` for finite values beyond their type.
    pub(crate) fn push_safetensors_as(
        &mut self,
        name: &str,
        mut tensors: Vec<Tensor>,
        to: Option<TensorType>,
        contents: Contents,
        metadata: &BTreeMap<String, String>,
    ) -> Result<()> {
        if to.is_none() {
            refuse_blocks(&tensors)?;
        }
        tensors.sort_by(|a, b| a.name.cmp(&b.name));
        let tensors: Vec<Tensor> = tensors.into_iter().map(|one| written(one, to)).collect();
        let record = |tensor: &Tensor| {
            let (name, dtype) = (tensor.name.clone(), tensor.dtype.clone());
            (name, dtype, tensor.dims())
        };
        let records: Records = tensors.iter().map(record).collect();
        let metadata = metadata.clone();
        let write = move |records: &Records, weights: &Leaves| {
            let mut metadata = metadata.clone();
            if contents == Contents::StateOfWeights {
                let digest = weights_digest(weights).to_string();
                metadata.insert(OPTIMIZER_WEIGHTS.to_string(), digest);
            }
            header(records, &metadata)
        };
        let (first, spans) = write(&records, &Leaves::new())?;
        let len = first.len() as u64;
        self.expect(len, &records, &spans, contents);
        let start = if contents == Contents::StateOfWeights {
            Segment::Late(
                len,
                Box::new(move |weights| Ok(write(&records, weights)?.0)),
            )
        } else {
            Segment::Known(first)
        };
        let tensors = tensors
            .into_iter()
            .map(|one| Segment::Tensor(Box::new(one)));
        self.push_segments(name, std::iter::once(start).chain(tensors).collect());
        Ok(())
    }

    /// Registers the tensors of the next file, after its header of `header` bytes, for the checksums.
    fn expect(&mut self, header: u64, records: &Records, spans: &[(u64, u64)], contents: Contents) {
        let file = self.files.len();
        let Some(checksums) = self
            .checksums
            .as_mut()
            .filter(|_| contents != Contents::Other)
        else {
            return;
        };
        for ((key, dtype, shape), (begin, end)) in records.iter().zip(spans) {
            let shape = shape.iter().map(|&dim| dim as u64).collect();
            let hasher = TensorHasher::plain(key, dtype, shape);
            checksums.expect(TensorSpan {
                hasher,
                file,
                begin: header + begin,
                end: header + end,
                state: contents != Contents::Weights,
                again: None,
            });
        }
    }
}

/// Name, dtype and shape of each tensor, in ascending order of names.
type Records = Vec<(String, String, Vec<usize>)>;

/// Contents of a safetensors file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Parameters and buffers.
    Weights,
    /// Tensors that an optimizer keeps.
    State,
    /// The same, with the digest of the weights in the files before it under [`OPTIMIZER_WEIGHTS`]. The stream must compute checksums of its
    /// bytes ([`FileStream::summed`]).
    StateOfWeights,
    /// No tensors of a model.
    Other,
}

fn header(records: &Records, metadata: &BTreeMap<String, String>) -> Result<SafetensorsHeader> {
    let records: Vec<_> = records
        .iter()
        .map(|(name, dtype, shape)| (name.clone(), dtype.as_str(), shape.clone()))
        .collect();
    safetensors_header(&records, metadata)
}
