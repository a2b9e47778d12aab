//! A part of a file that is written: known bytes, or the place where they come from.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::formats::Digest;
use crate::state::Tensor;

/// Function that writes the last document, given the SHA-256 of each piece of each file before it; its length is always the same.
pub(super) type Seal = Box<dyn Fn(&[Vec<String>]) -> Result<Vec<u8>>>;

/// Digests of tensors by name.
pub(super) type Leaves = BTreeMap<String, Digest>;

/// Function that writes bytes that depend on the digests of the weights before them; their length is always the same.
pub(super) type Late = Box<dyn Fn(&Leaves) -> Result<Vec<u8>>>;

/// A part of a file. Its bytes are read when they are needed.
pub(crate) enum Segment {
    /// A few bytes in memory.
    Known(Vec<u8>),
    /// The bytes of a tensor.
    Tensor(Box<Tensor>),
    /// A document that contains the checksums of everything before it.
    Sealed(Seal),
    /// Number of bytes, and the function that writes them from the digests before them.
    Late(u64, Late),
    /// The receipt of the stream, with this length.
    Receipt(u64),
}

impl Segment {
    /// Returns the number of its bytes, if it is known.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Segment::Known(bytes) => bytes.len() as u64,
            Segment::Tensor(tensor) => tensor.len(),
            Segment::Sealed(_) => 0,
            Segment::Late(bytes, _) | Segment::Receipt(bytes) => *bytes,
        }
    }
}
