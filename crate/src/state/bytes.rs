//! The bytes of a tensor: their place, their number and their digest.

use std::fmt;
use std::rc::Rc;

use burn::tensor::Tensor as DeviceTensor;

use super::digest::leaf;
use super::reordering::Reordering;
use super::tensor::{Bytes, Merged, Span, Tensor};
use super::tensor_manifest::is_sized;
use crate::error::Result;
use crate::formats::{ByteSource, Digest, Encoding, SourceSpan, base_name};

impl Bytes {
    /// Creates `bytes` bytes of `source`, from `begin` on.
    pub fn of_source(source: Rc<dyn ByteSource>, begin: u64, bytes: u64) -> Self {
        Self::ordered(source, begin, bytes, Reordering::Same)
    }

    /// Creates `bytes` bytes of `source`, from `begin` on, whose elements have this order there.
    pub fn ordered(source: Rc<dyn ByteSource>, begin: u64, bytes: u64, order: Reordering) -> Self {
        Self::Span(Span {
            stored: SourceSpan {
                source,
                begin,
                bytes,
            },
            order,
            own_name: None,
        })
    }

    /// Creates bytes in memory.
    pub fn host(bytes: impl Into<Rc<[u8]>>) -> Self {
        Self::Host(bytes.into())
    }

    /// Creates the bytes of a flat tensor on the device.
    pub fn device(tensor: DeviceTensor<1>) -> Self {
        Self::Device(Box::new(tensor))
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Span(_) => "in a file",
            Self::Host(_) => "in memory",
            Self::Device(_) => "on the device",
            Self::Merged(_) | Self::Moved(_) => "merged",
            Self::Encoded(_) => "encoded",
        })
    }
}

impl Tensor {
    /// Name in its file; that of the tensor where it has no other.
    pub(crate) fn own_name(&self) -> &str {
        match &self.bytes {
            Bytes::Span(span) => span.own_name.as_deref().unwrap_or(&self.name),
            Bytes::Merged(merged) => merged.base.own_name(),
            Bytes::Moved(moved) => moved.base.own_name(),
            _ => &self.name,
        }
    }

    /// Number of its bytes.
    pub fn len(&self) -> u64 {
        match &self.bytes {
            Bytes::Span(span) => span.stored.bytes,
            Bytes::Host(bytes) => bytes.len() as u64,
            Bytes::Device(tensor) => (tensor.dims()[0] * tensor.dtype().size()) as u64,
            Bytes::Moved(moved) => moved.base.len(),
            Bytes::Merged(_) | Bytes::Encoded(_) => {
                self.as_encoded().map_or(0, |encoded| encoded.bytes())
            }
        }
    }

    /// True if it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Handle of a flat tensor on the device; `None` if it is elsewhere.
    pub(crate) fn on_device(&self) -> Option<&DeviceTensor<1>> {
        match &self.bytes {
            Bytes::Device(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// The bytes, if they are in memory.
    pub(crate) fn in_memory(&self) -> Option<&Rc<[u8]>> {
        match &self.bytes {
            Bytes::Host(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Its bytes in a file, in the order of the file.
    pub(crate) fn stored(&self) -> Option<&SourceSpan> {
        match &self.bytes {
            Bytes::Span(span) => Some(&span.stored),
            _ => None,
        }
    }

    /// The same; `None` for a type of unknown size.
    pub(crate) fn span(&self) -> Option<&SourceSpan> {
        self.stored().filter(|_| is_sized(&self.dtype))
    }

    /// Name of the file that it is in, without a path.
    pub(crate) fn file(&self) -> Option<&str> {
        self.stored().map(|span| base_name(span.source.name()))
    }

    /// Order of its elements in its file; that of Hugging Face where no other fits its shape.
    pub(crate) fn order(&self) -> Reordering {
        match &self.bytes {
            Bytes::Span(span) => span.order.fitting(&self.shape),
            _ => Reordering::Same,
        }
    }

    /// True if its bytes in a file are its values in this order.
    pub(crate) fn lies_as(&self, order: Reordering) -> bool {
        self.span().is_some() && self.order() == order.fitting(&self.shape)
    }

    /// Returns the tensor with its values in the order in which they are stored.
    #[must_use]
    pub(super) fn in_stored_order(mut self) -> Self {
        if let Bytes::Span(span) = &mut self.bytes {
            span.order = Reordering::Same;
        }
        self
    }

    /// The sums that it consists of, if a pair of an adapter was merged into it.
    pub(crate) fn merged(&self) -> Option<&Merged> {
        match &self.bytes {
            Bytes::Merged(merged) => Some(merged),
            _ => None,
        }
    }

    /// The digest, if it is known.
    pub(crate) fn known_digest(&self) -> Option<Digest> {
        self.sum.cell().get().copied()
    }

    /// Keeps the digest of the bytes.
    pub(crate) fn remember(&self, sum: Digest) {
        // A second digest is that of the same bytes.
        let _ = self.sum.cell().set(sum);
    }

    /// Digest of name, dtype, shape and bytes, if that of the bytes is known already.
    pub(crate) fn known_leaf(&self) -> Option<Digest> {
        self.known_digest().map(|digest| self.leaf_of(digest))
    }

    /// Computes the digest of name, dtype, shape and bytes.
    pub(super) async fn leaf(&self) -> Result<Digest> {
        Ok(self.leaf_of(self.digest().await?))
    }

    fn leaf_of(&self, bytes: Digest) -> Digest {
        leaf(&self.name, &self.dtype, &self.shape, bytes)
    }

    /// Encoding of its values; `None` if they cannot be read as numbers.
    pub(crate) fn encoding(&self) -> Option<Encoding> {
        Encoding::of_dtype(&self.dtype)
    }
}
