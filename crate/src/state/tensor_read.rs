//! Reads the bytes of a tensor, wherever they are.

use std::ops::Range;
use std::rc::Rc;

use super::encoded::EncodedReader;
use super::tensor::{Bytes, Encoded, Tensor};
use crate::error::{Refusal, Result, word};
use crate::formats::{ByteSource, Digest, Hasher, reserved};
use crate::gpu::transfer::{PIECE_BYTES, Part, read_parts};

impl Tensor {
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
            Bytes::Device(tensor) => {
                let part = Part {
                    tensor: tensor.as_ref().clone(),
                    bytes: range,
                };
                read_parts(&[part]).await
            }
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

    /// Reads all bytes of a tensor that is known to be small.
    ///
    /// # Errors
    /// `source.too-large` for more than memory can hold.
    pub async fn all_bytes(&self) -> Result<Rc<[u8]>> {
        if let Some(bytes) = self.in_memory() {
            return Ok(bytes.clone());
        }
        let too_large = || {
            Refusal::new(word!("source.too-large"))
                .stage("read")
                .expected("what memory can hold")
                .found(self.len())
        };
        let mut bytes = reserved(self.len()).ok_or_else(too_large)?;
        self.for_each_piece(|piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })
        .await?;
        Ok(bytes.into())
    }
}
