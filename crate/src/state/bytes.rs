//! The bytes of a tensor: their place, their number and their digest.

use std::fmt;
use std::rc::Rc;

use burn::tensor::Tensor as DeviceTensor;

use super::digest::leaf;
use super::reordering::Reordering;
use super::tensor::{Bytes, Change, Merged, Span, Tensor};
use super::tensor_manifest::is_sized;
use crate::error::Result;
use crate::formats::{ByteSource, Digest, Encoding, SourceSpan, base_name};

impl Bytes {
    /// Returns `bytes` bytes of `source`, from `begin` on.
    pub fn of_source(source: Rc<dyn ByteSource>, begin: u64, bytes: u64) -> Self {
        Self::ordered(source, begin, bytes, Reordering::Same)
    }

    /// Returns `bytes` bytes of `source`, from `begin` on, whose elements have this order there.
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

    /// Returns bytes in memory.
    pub fn host(bytes: impl Into<Rc<[u8]>>) -> Self {
        Self::Host(bytes.into())
    }

    /// Returns the bytes of a flat tensor on the device.
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
            Self::Merged(_) => "merged",
            Self::Encoded(_) => "encoded",
        })
    }
}

impl Tensor {
    /// Returns its name in its file.
    pub(crate) fn own_name(&self) -> &str {
        match &self.bytes {
            Bytes::Span(span) => span.own_name.as_deref().unwrap_or(&self.name),
            Bytes::Merged(merged) => merged.base.own_name(),
            _ => &self.name,
        }
    }

    /// Returns the number of its bytes.
    pub fn len(&self) -> u64 {
        match &self.bytes {
            Bytes::Span(span) => span.stored.bytes,
            Bytes::Host(bytes) => bytes.len() as u64,
            Bytes::Device(tensor) => (tensor.dims()[0] * tensor.dtype().size()) as u64,
            Bytes::Merged(merged) => match &merged.change {
                Change::Words { .. } => merged.base.len(),
                Change::Pair(_) => self.as_encoded().map_or(0, |encoded| encoded.bytes()),
            },
            Bytes::Encoded(encoded) => encoded.bytes(),
        }
    }

    /// Returns whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the handle of a tensor on the device.
    pub(crate) fn on_device(&self) -> Option<&DeviceTensor<1>> {
        match &self.bytes {
            Bytes::Device(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// Returns the bytes, if they are in memory.
    pub(crate) fn in_memory(&self) -> Option<&Rc<[u8]>> {
        match &self.bytes {
            Bytes::Host(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Returns its bytes in a file, in the order of the file.
    pub(crate) fn stored(&self) -> Option<&SourceSpan> {
        match &self.bytes {
            Bytes::Span(span) => Some(&span.stored),
            _ => None,
        }
    }

    /// Returns the same; `None` for a type of unknown size.
    pub(crate) fn span(&self) -> Option<&SourceSpan> {
        self.stored().filter(|_| is_sized(&self.dtype))
    }

    /// Returns the name of the file that it is in, without a path.
    pub(crate) fn file(&self) -> Option<&str> {
        let span = self.stored();
        span.map(|span| base_name(span.source.name()))
    }

    /// Returns the order of its elements in its file; that of Hugging Face where no other fits its shape.
    pub(crate) fn order(&self) -> Reordering {
        match &self.bytes {
            Bytes::Span(span) => span.order.fitting(&self.shape),
            _ => Reordering::Same,
        }
    }

    /// Returns whether its bytes in a file are its values in this order.
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

    /// Returns the sums that it consists of, if a pair of an adapter was merged into it.
    pub(crate) fn merged(&self) -> Option<&Merged> {
        match &self.bytes {
            Bytes::Merged(merged) if merged.pair().is_some() => Some(merged),
            _ => None,
        }
    }

    /// Returns the digest, if it is known.
    pub(crate) fn known_digest(&self) -> Option<Digest> {
        self.sum.cell().get().copied()
    }

    /// Keeps the digest of the bytes.
    pub(crate) fn remember(&self, sum: Digest) {
        // A second digest is that of the same bytes.
        let _ = self.sum.cell().set(sum);
    }

    /// Returns the digest of name, dtype, shape and bytes, if that of the bytes is known already.
    pub(crate) fn known_leaf(&self) -> Option<Digest> {
        let digest = self.known_digest()?;
        Some(leaf(&self.name, &self.dtype, &self.shape, digest))
    }

    /// Computes the digest of name, dtype, shape and bytes.
    pub(super) async fn leaf(&self) -> Result<Digest> {
        let digest = self.digest().await?;
        Ok(leaf(&self.name, &self.dtype, &self.shape, digest))
    }

    /// Returns the encoding of its values; `None` if they cannot be read as numbers.
    pub(crate) fn encoding(&self) -> Option<Encoding> {
        Encoding::of_dtype(&self.dtype)
    }
}
