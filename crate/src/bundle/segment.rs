//! A part of a file that is written: known bytes, or the place where they come from.

use std::collections::BTreeMap;
use std::ops::Range;
use std::pin::Pin;

use burn::tensor::Tensor;

use super::encoded_tensor::EncodedTensor;
use crate::error::Result;
use crate::formats::{Digest, Hasher, SourceSpan, sha256_of};
use crate::gpu::transfer::PIECE_BYTES;
use crate::state::Payload;

/// Function that returns the bytes of a range that is at most a piece long.
pub(crate) type ReadRange =
    Box<dyn Fn(Range<u64>) -> Pin<Box<dyn Future<Output = Result<Vec<u8>>>>>>;

/// Function that writes the last document, given the SHA-256 of each piece of each file before it; its length is always the same.
pub(super) type Seal = Box<dyn Fn(&[Vec<String>]) -> Result<Vec<u8>>>;

/// Digests of tensors by name.
pub(super) type Leaves = BTreeMap<String, Digest>;

/// Function that writes bytes that depend on the digests of the weights before them; their length is always the same.
pub(super) type Late = Box<dyn Fn(&Leaves) -> Result<Vec<u8>>>;

/// A part of a file. Its bytes are read when they are needed.
#[allow(
    clippy::large_enum_variant,
    reason = "a handle for each tensor of a model: few, and short-lived"
)]
pub(crate) enum Segment {
    /// A few bytes in memory.
    Bytes(Vec<u8>),
    /// A flat tensor on the device, written as it is stored there.
    Device(Tensor<1>),
    /// Bytes of another file, written unchanged.
    Copied(SourceSpan),
    /// A tensor that is converted to the file's order and type.
    Encoded(EncodedTensor),
    /// Number of bytes, and the function that reads them.
    Computed(u64, ReadRange),
    /// A document that contains the checksums of everything before it.
    Sealed(Seal),
    /// Number of bytes, and the function that writes them from the digests before them.
    Late(u64, Late),
    /// The receipt of the stream, with this length.
    Receipt(u64),
}

impl Segment {
    /// Makes a segment of a payload, which is read when its turn comes.
    pub(crate) fn of_payload(payload: &Payload) -> Self {
        if let Some(tensor) = payload.on_device() {
            return Self::Device(tensor.clone());
        }
        let own = payload.clone();
        let read = move |range| {
            let payload = own.clone();
            Box::pin(async move { payload.read(range).await }) as _
        };
        Self::Computed(payload.len(), Box::new(read))
    }

    /// Returns the number of its bytes, if it is known.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Segment::Bytes(bytes) => bytes.len() as u64,
            Segment::Device(tensor) => (tensor.dims()[0] * tensor.dtype().size()) as u64,
            Segment::Copied(span) => span.bytes,
            Segment::Encoded(tensor) => tensor.bytes(),
            Segment::Computed(bytes, _) => *bytes,
            Segment::Sealed(_) => 0,
            Segment::Late(bytes, _) | Segment::Receipt(bytes) => *bytes,
        }
    }
}

impl Segment {
    /// Computes the SHA-256 of the bytes of a tensor, which are read for it.
    pub(super) async fn digest(&mut self) -> Result<Digest> {
        let mut sum = Hasher::new();
        match self {
            Segment::Copied(SourceSpan {
                source,
                begin,
                bytes,
            }) => return sha256_of(source, *begin, *begin + *bytes),
            Segment::Encoded(tensor) => loop {
                let bytes = tensor.take(PIECE_BYTES).await?;
                if bytes.is_empty() {
                    break;
                }
                sum.update(&bytes);
            },
            Segment::Bytes(bytes) => sum.update(bytes),
            // No tensor with an order of its own is any of these.
            _ => {}
        }
        Ok(sum.finish())
    }
}
