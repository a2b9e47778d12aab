//! The bytes of a tensor: their place, number and digest; reads them, wherever they are.

use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use burn::tensor::Tensor as DeviceTensor;

use super::digest::leaf;
use super::encoded::EncodedReader;
use super::reordering::Reordering;
use super::tensor::{Bytes, Encoded, Merged, Span, Tensor};
use super::tensor_manifest::is_sized;
use crate::error::Result;
use crate::formats::{
    ByteSource, Digest, Encoding, Hasher, SourceSpan, base_name, reserved, too_large,
};
use crate::gpu::transfer::{Flat, PIECE_BYTES, read_parts};

impl Bytes {
    /// Creates `bytes` bytes of `source`, from `begin` on.
    pub fn of_source(source: Rc<dyn ByteSource>, begin: u64, bytes: u64) -> Self {
        Self::ordered(source, begin, bytes, Reordering::Same)
    }

    /// Creates `bytes` bytes of `source`, from `begin` on, whose elements have this order there.
    #[doc(hidden)]
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
        Self::Device(tensor.into())
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
            Bytes::Device(flat) => flat.bytes(),
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

    /// Its values on the device; `None` if they are elsewhere.
    pub(crate) fn on_device(&self) -> Option<&Flat> {
        match &self.bytes {
            Bytes::Device(flat) => Some(flat),
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

    /// Takes the values in the order in which they are stored.
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

    /// Encoding of its values, if they have to be computed one after another.
    pub(super) fn as_encoded(&self) -> Option<Rc<Encoded>> {
        match self.bytes() {
            Bytes::Encoded(encoded) => Some(Rc::clone(encoded)),
            Bytes::Merged(_) => Some(Rc::new(Encoded::same(self.clone()))),
            _ => None,
        }
    }

    /// Reader of bytes that have to be computed one after another.
    pub(crate) fn reader(&self) -> Option<EncodedReader> {
        let encoded = self.as_encoded()?;
        Some(EncodedReader::new(&self.name, &encoded))
    }

    /// Reads the bytes `range`, which is at most a piece long. Bytes that are computed one after another are computed from the first one on.
    pub(crate) async fn read(&self, range: Range<u64>) -> Result<Vec<u8>> {
        if range.is_empty() {
            return Ok(Vec::new());
        }
        match self.bytes() {
            Bytes::Span(span) => {
                let (source, begin) = (&span.stored.source, span.stored.begin);
                let ordered = span
                    .order
                    .ordered(source, begin, span.stored.bytes, &self.shape);
                let Some(ordered) = ordered else {
                    return span.stored.read(&range);
                };
                let mut bytes = vec![0; (range.end - range.start) as usize];
                ordered.read_at(range.start, &mut bytes)?;
                Ok(bytes)
            }
            // The range is inside a slice, so the offsets fit into `usize`.
            Bytes::Host(bytes) => Ok(bytes[range.start as usize..range.end as usize].to_vec()),
            Bytes::Device(flat) => read_parts(&flat.parts(&range)).await,
            Bytes::Moved(moved) => Box::pin(moved.read(range)).await,
            Bytes::Merged(_) | Bytes::Encoded(_) => {
                let mut reader = self.reader().expect("these bytes have a reader");
                let (mut at, piece) = (0, PIECE_BYTES as u64);
                while at < range.start {
                    let skipped = reader.take(piece.min(range.start - at) as usize).await?;
                    at += skipped.len() as u64;
                }
                reader.take((range.end - range.start) as usize).await
            }
        }
    }

    /// Calls `each` with the bytes in order, in pieces of at most 8 MiB.
    ///
    /// # Errors
    /// Errors of reading and of `each`.
    pub async fn for_each_piece(&self, each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.for_each_whole(1, each).await
    }

    /// Calls `each` with the bytes in pieces that are multiples of `unit` bytes, except for the last one.
    pub(crate) async fn for_each_whole(
        &self,
        unit: usize,
        mut each: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let unit = unit.max(1);
        let whole = (PIECE_BYTES / unit).max(1) * unit;
        let (mut at, end, mut reader) = (0, self.len(), self.reader());
        while at < end {
            let now = (whole as u64).min(end - at);
            let bytes = match &mut reader {
                Some(reader) => reader.take(now as usize).await?,
                None => self.read(at..at + now).await?,
            };
            each(&bytes)?;
            at += now;
        }
        Ok(())
    }

    /// Computes the SHA-256 of the bytes, which are read once; later calls reuse it.
    ///
    /// # Errors
    /// Errors of reading.
    pub async fn digest(&self) -> Result<Digest> {
        if let Some(sum) = self.known_digest() {
            return Ok(sum);
        }
        let mut hasher = Hasher::new();
        self.for_each_piece(|piece| {
            hasher.update(piece);
            Ok(())
        })
        .await?;
        let sum = hasher.finish();
        self.remember(sum);
        Ok(sum)
    }

    /// Holds the bytes of the tensor in memory, where it must fit.
    ///
    /// # Errors
    /// The errors of [`Self::all_bytes`].
    pub(crate) async fn held(self) -> Result<Self> {
        let bytes = self.all_bytes().await?;
        let sum = self.known_digest();
        let held = self.with_bytes(Bytes::Host(bytes));
        sum.into_iter().for_each(|sum| held.remember(sum));
        Ok(held)
    }

    /// The tensor with bytes that can be read without waiting: in a file, or in memory.
    pub(crate) async fn readable(self) -> Result<Self> {
        match &self.bytes {
            Bytes::Span(_) | Bytes::Host(_) => Ok(self),
            _ => self.held().await,
        }
    }

    /// Reads bytes from an offset on, of a tensor that is [`Self::readable`].
    pub(crate) fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        match &self.bytes {
            Bytes::Span(span) => span.stored.source.read_at(span.stored.begin + offset, out),
            Bytes::Host(bytes) => {
                let found = usize::try_from(offset)
                    .ok()
                    .and_then(|at| bytes.get(at..)?.get(..out.len()));
                out.copy_from_slice(found.ok_or_else(|| too_large().subject(&self.name))?);
                Ok(())
            }
            _ => Err(too_large().subject(&self.name).into()),
        }
    }

    /// Reads all bytes of a tensor that is known to be small.
    ///
    /// # Errors
    /// `source.too-large` for more than memory can hold.
    pub async fn all_bytes(&self) -> Result<Rc<[u8]>> {
        if let Some(bytes) = self.in_memory() {
            return Ok(bytes.clone());
        }
        let mut bytes = reserved(self.len()).ok_or_else(|| {
            too_large()
                .stage("read")
                .expected("what memory can hold")
                .found(self.len())
        })?;
        self.for_each_piece(|piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })
        .await?;
        Ok(bytes.into())
    }
}
