//! Writes a safetensors file as a stream: its header, and the values of its tensors from wherever they are.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::checksums::{Leaves, TensorSpan};
use super::refusals::refused;
use super::stream::{FileStream, Segment};
use super::tensor_hasher::TensorHasher;
use crate::error::{Result, refuse_all, word};
use crate::formats::{SafetensorsHeader, TensorType, safetensors_header};
use crate::state::{Encoded, Reordering, Tensor, weights_digest};

/// Metadata key of an optimizer file that holds the digest of the weights that the state belongs to.
pub(crate) const OPTIMIZER_WEIGHTS: &str = "tabtune.weights";

/// The metadata of a file that PyTorch's readers accept, with further entries.
pub(crate) fn format_pt<'a>(
    further: impl IntoIterator<Item = (&'a str, String)>,
) -> BTreeMap<String, String> {
    let format = ("format", "pt".to_string());
    let entries = std::iter::once(format).chain(further);
    entries
        .map(|(key, value)| (key.to_string(), value))
        .collect()
}

/// The type of a plain dtype word.
fn plain(word: &str) -> Option<TensorType> {
    [TensorType::F32, TensorType::F16, TensorType::Bf16]
        .into_iter()
        .find(|one| one.ggml().dtype() == word)
}

impl Tensor {
    /// The type in which it is encoded if `to` is requested; `None` if its bytes are written unchanged. State tensors always are.
    fn encoded_as(&self, to: Option<TensorType>) -> Option<TensorType> {
        let same = to.is_none_or(|to| to.ggml().dtype() == self.dtype);
        let as_it_is = self.is_state() || same && self.merged().is_none();
        (!as_it_is).then(|| to.or_else(|| plain(&self.dtype)).unwrap_or(TensorType::F32))
    }

    /// Its dtype in a safetensors file if `to` is requested.
    pub(crate) fn dtype_as(&self, to: Option<TensorType>) -> String {
        self.encoded_as(to)
            .map_or_else(|| self.dtype.clone(), |to| to.ggml().dtype())
    }
}

/// Gives the tensor the type in which it is written.
fn written(tensor: Tensor, to: Option<TensorType>) -> Tensor {
    let Some(to) = tensor.encoded_as(to) else {
        return tensor;
    };
    let (name, shape) = (tensor.name.clone(), tensor.shape.clone());
    Tensor::encoded(&name, &shape, Encoded::new(tensor, Reordering::Same, to))
}

/// Refuses blocks that would be written as they are stored; all are listed.
pub(crate) fn refuse_blocks(tensors: &[Tensor]) -> Result<()> {
    let blocks = tensors.iter().filter(|tensor| tensor.is_blocks());
    let refuse = |tensor: &Tensor| {
        refused(
            word!("export.safetensors.quantised"),
            "safetensors",
            &tensor.name,
        )
        .expected("a dtype of single values")
        .found(&tensor.dtype)
        .hint("dequantise by asking for f32, bf16 or f16")
    };
    refuse_all(blocks.map(refuse).collect())
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
        let (own, metadata) = (tensors.clone(), metadata.clone());
        let late = contents == Contents::StateOfWeights;
        let write = move |weights: &Leaves| {
            let mut metadata = metadata.clone();
            if late {
                let digest = weights_digest(weights).to_string();
                metadata.insert(OPTIMIZER_WEIGHTS.to_string(), digest);
            }
            header(&own, &metadata)
        };
        let (first, spans) = write(&Leaves::new())?;
        let (len, file) = (first.len() as u64, self.files.len());
        let checksums = self.checksums.as_mut();
        if let Some(checksums) = checksums.filter(|_| contents != Contents::Other) {
            for (tensor, (begin, end)) in tensors.iter().zip(spans) {
                let shape = tensor.shape.clone();
                let hasher = TensorHasher::plain(&tensor.name, &tensor.dtype, shape);
                checksums.expect(TensorSpan {
                    state: contents != Contents::Weights,
                    ..TensorSpan::new(hasher, file, len + begin, len + end)
                });
            }
        }
        let first = match late {
            true => Segment::Late(
                len,
                Rc::new(move |stream| Ok(write(&stream.checksums()?.weights)?.0)),
            ),
            false => Segment::Known(first),
        };
        let tensors = tensors.into_iter().map(Box::new).map(Segment::Tensor);
        self.push(name, std::iter::once(first).chain(tensors).collect());
        Ok(())
    }
}

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

fn header(tensors: &[Tensor], metadata: &BTreeMap<String, String>) -> Result<SafetensorsHeader> {
    let records: Vec<_> = tensors
        .iter()
        .map(|tensor| (tensor.name.clone(), tensor.dtype.as_str(), tensor.dims()))
        .collect();
    safetensors_header(&records, metadata)
}
