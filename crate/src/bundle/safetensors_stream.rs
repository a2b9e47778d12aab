//! Writes a safetensors file as a stream: its header, and the values of its tensors from wherever they are.

use std::collections::BTreeMap;

use super::checksums::TensorSpan;
use super::encoded_tensor::{EncodedTensor, Values};
use super::segment::{Leaves, Segment};
use super::stream::{FileStream, StreamTensor, StreamValues};
use super::tensor_hasher::TensorHasher;
use crate::error::{Error, Refusal, Result, word};
use crate::formats::{SafetensorsHeader, TensorType, safetensors_header};
use crate::state::{Reordering, weights_digest};

/// Metadata key of an optimizer file that holds the digest of the weights that the state belongs to.
pub(crate) const OPTIMIZER_WEIGHTS: &str = "tabtune.weights";

/// Returns the type of a plain dtype word.
fn plain(word: &str) -> Option<TensorType> {
    [TensorType::F32, TensorType::F16, TensorType::Bf16]
        .into_iter()
        .find(|one| one.ggml().dtype() == word)
}

impl StreamTensor {
    /// Returns the type in which it is encoded if `to` is requested; `None` if its bytes are written unchanged.
    fn encoded_as(&self, to: Option<TensorType>) -> Option<TensorType> {
        let same = to.is_none_or(|to| to.ggml().dtype() == self.dtype());
        let as_it_is = match &self.values {
            StreamValues::U64(_) | StreamValues::Copied(..) => true,
            StreamValues::Device(_) => same,
            StreamValues::Stored(stored) => same && stored.lies_as(Reordering::Same),
        };
        // This is F64 in another order than Hugging Face's: the values of a model are f32.
        (!as_it_is).then(|| {
            to.or_else(|| plain(self.dtype()))
                .unwrap_or(TensorType::F32)
        })
    }

    /// Returns its dtype in a safetensors file if `to` is requested.
    pub(crate) fn dtype_as(&self, to: Option<TensorType>) -> String {
        self.encoded_as(to)
            .map_or_else(|| self.dtype().to_string(), |to| to.ggml().dtype())
    }
}

/// Returns the bytes of the tensor as they are written.
fn segment(tensor: StreamTensor, to: Option<TensorType>) -> Segment {
    let to = tensor.encoded_as(to);
    let values = match (tensor.values, to) {
        (StreamValues::U64(value), _) => return Segment::Bytes(value.to_le_bytes().to_vec()),
        (StreamValues::Copied(_, span), _) => return Segment::Copied(span),
        (StreamValues::Device(values), None) => return Segment::Device(values),
        (StreamValues::Device(values), Some(_)) => Values::Device(values),
        (StreamValues::Stored(stored), _) => match stored.span().filter(|_| to.is_none()) {
            Some(span) => return Segment::Copied(span),
            None => Values::Stored(stored),
        },
    };
    Segment::Encoded(EncodedTensor::new(
        &tensor.name,
        values,
        &tensor.shape,
        Reordering::Same,
        to.unwrap_or(TensorType::F32),
    ))
}

/// Refuses blocks that would be written as they are stored; all are listed.
pub(crate) fn refuse_blocks(tensors: &[StreamTensor]) -> Result<()> {
    let blocks = tensors.iter().filter(
        |tensor| matches!(&tensor.values, StreamValues::Stored(stored) if stored.is_blocks()),
    );
    let refuse = |tensor: &StreamTensor| {
        let refusal = Refusal::new(word!("export.safetensors.quantised"))
            .of("safetensors")
            .subject(&tensor.name);
        refusal
            .expected("a dtype of single values")
            .found(tensor.dtype())
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
    /// `export.safetensors.quantised` for blocks, `export.name.invalid` for a name that the format cannot hold.
    pub fn push_safetensors(
        &mut self,
        name: &str,
        tensors: Vec<StreamTensor>,
        metadata: &BTreeMap<String, String>,
    ) -> Result<()> {
        self.push_safetensors_as(name, tensors, None, metadata)
    }

    /// Adds a safetensors file of `tensors` with `metadata`. All tensors except counts of steps are written as `to`, one of F32, F16 and BF16,
    /// or without it as they are stored.
    ///
    /// # Errors
    /// `export.safetensors.quantised` for blocks without `to`, `export.name.invalid` for a name that the format cannot hold. While the stream
    /// is read, `export.overflow` for finite values beyond their type.
    pub(crate) fn push_safetensors_as(
        &mut self,
        name: &str,
        tensors: Vec<StreamTensor>,
        to: Option<TensorType>,
        metadata: &BTreeMap<String, String>,
    ) -> Result<()> {
        let (entries, segments) = contents(tensors, to)?;
        let (header, spans) = header(&entries, metadata)?;
        self.expect(header.len() as u64, &entries, &spans, false);
        let bytes = header.len() as u64 + spans.last().map_or(0, |span| span.1);
        self.push(
            name,
            bytes,
            std::iter::once(Segment::Bytes(header))
                .chain(segments)
                .collect(),
        );
        Ok(())
    }

    /// Adds a safetensors file of the state tensors of an optimizer. Its metadata are `metadata` and, under [`OPTIMIZER_WEIGHTS`], the digest
    /// of the weights in the files before it. The stream must compute checksums of its bytes ([`Self::summed`]).
    ///
    /// # Errors
    /// The errors of [`Self::push_safetensors_as`].
    pub(crate) fn push_optimizer(
        &mut self,
        name: &str,
        tensors: Vec<StreamTensor>,
        metadata: &BTreeMap<String, String>,
    ) -> Result<()> {
        let (entries, segments) = contents(tensors, None)?;
        let metadata = metadata.clone();
        let of_weights = move |entries: &Entries, weights: &Leaves| {
            let mut metadata = metadata.clone();
            metadata.insert(
                OPTIMIZER_WEIGHTS.to_string(),
                weights_digest(weights).to_string(),
            );
            header(entries, &metadata)
        };
        let (first, spans) = of_weights(&entries, &Leaves::new())?;
        let len = first.len() as u64;
        self.expect(len, &entries, &spans, true);
        let bytes = len + spans.last().map_or(0, |span| span.1);
        let late = Segment::Late(
            len,
            Box::new(move |checksums| Ok(of_weights(&entries, checksums)?.0)),
        );
        self.push(name, bytes, std::iter::once(late).chain(segments).collect());
        Ok(())
    }

    /// Registers the tensors of the next file, after its header of `header` bytes, for the checksums.
    pub(crate) fn expect(
        &mut self,
        header: u64,
        entries: &Entries,
        spans: &[(u64, u64)],
        state: bool,
    ) {
        let file = self.files.len();
        let Some(checksums) = &mut self.checksums else {
            return;
        };
        for ((key, dtype, shape), (begin, end)) in entries.iter().zip(spans) {
            let shape = shape.iter().map(|&dim| dim as u64).collect();
            let hasher = TensorHasher::plain(key, dtype, shape);
            checksums.expect(TensorSpan {
                hasher,
                file,
                begin: header + begin,
                end: header + end,
                state,
                again: None,
            });
        }
    }
}

/// Name, dtype and shape of each tensor, in ascending order of names.
pub(crate) type Entries = Vec<(String, String, Vec<usize>)>;

fn contents(
    mut tensors: Vec<StreamTensor>,
    to: Option<TensorType>,
) -> Result<(Entries, Vec<Segment>)> {
    if to.is_none() {
        refuse_blocks(&tensors)?;
    }
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    let one = |tensor: StreamTensor| {
        let entry = (
            tensor.name.clone(),
            tensor.dtype_as(to),
            tensor.shape.clone(),
        );
        (entry, segment(tensor, to))
    };
    Ok(tensors.into_iter().map(one).unzip())
}

fn header(entries: &Entries, metadata: &BTreeMap<String, String>) -> Result<SafetensorsHeader> {
    let entries: Vec<_> = entries
        .iter()
        .map(|(name, dtype, shape)| (name.clone(), dtype.as_str(), shape.clone()))
        .collect();
    safetensors_header(&entries, metadata)
}
