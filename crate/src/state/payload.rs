//! The stored bytes of a tensor, wherever they are.

use std::cell::OnceCell;
use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use burn::tensor::Tensor;

use super::reordering::Reordering;
use crate::error::{Refusal, Result, word};
use crate::formats::{ByteSource, Digest, Hasher, MemorySource, SourceSpan, base_name};
use crate::gpu::transfer::{PIECE_BYTES, Part, read_parts};

/// Stored bytes: in memory, in a file, or on the device. They are read on demand by pieces of at most 8 MiB. Clones share them, and their
/// digest once it is known.
///
/// ```
/// use std::rc::Rc;
/// use tabtune::formats::MemorySource;
/// use tabtune::state::Payload;
///
/// assert_eq!(Payload::owned(vec![1, 2, 3]).len(), 3);
/// let file = Rc::new(MemorySource::new("weights.bin", vec![0; 100]));
/// assert_eq!(Payload::of_source(file, 20, 8).len(), 8);
/// ```
pub struct Payload {
    place: Place,
    /// Digest shared among clones; allocated when a clone or a digest is first requested, since an opened file has many payloads that are never
    /// read.
    sum: OnceCell<Rc<OnceCell<Digest>>>,
}

impl Clone for Payload {
    fn clone(&self) -> Self {
        Self {
            place: self.place.clone(),
            sum: OnceCell::from(Rc::clone(self.sum())),
        }
    }
}

#[derive(Clone)]
enum Place {
    Owned(Rc<[u8]>),
    Span(SourceSpan),
    /// Bytes of a file in another order: their position there, and the source that orders them.
    Ordered {
        stored: SourceSpan,
        ordered: SourceSpan,
    },
    Device(Box<Tensor<1>>),
    Words(Rc<Words>),
}

/// Two payloads of equal length as unsigned words of `width` bytes, added or subtracted with wrapping.
struct Words {
    left: Payload,
    right: Payload,
    width: u64,
    subtract: bool,
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match &self.place {
            Place::Owned(_) => "owned",
            Place::Span(_) => "span",
            Place::Ordered { .. } => "ordered",
            Place::Device(_) => "device",
            Place::Words(_) => "words",
        };
        write!(f, "Payload({place}, {} bytes)", self.len())
    }
}

impl Payload {
    fn new(place: Place) -> Self {
        Self {
            place,
            sum: OnceCell::new(),
        }
    }

    fn sum(&self) -> &Rc<OnceCell<Digest>> {
        self.sum.get_or_init(Rc::default)
    }

    /// Creates a payload of bytes in memory.
    pub fn owned(bytes: impl Into<Rc<[u8]>>) -> Self {
        Self::new(Place::Owned(bytes.into()))
    }

    /// Creates a payload of bytes in memory whose digest is known.
    pub(crate) fn summed(bytes: impl Into<Rc<[u8]>>, sum: Digest) -> Self {
        let payload = Self::owned(bytes);
        payload.remember(sum);
        payload
    }

    /// Creates a payload of `bytes` bytes of `source`, from `begin` on.
    pub fn of_source(source: Rc<dyn ByteSource>, begin: u64, bytes: u64) -> Self {
        Self::new(Place::Span(SourceSpan {
            source,
            begin,
            bytes,
        }))
    }

    /// Creates the payload of `bytes` bytes of `source`, from `begin` on, in Hugging Face's order, where the file has them in another one. A
    /// tensor of this shape (Hugging Face's) that cannot have the order `stored` is left as it is.
    pub fn reordered(
        source: Rc<dyn ByteSource>,
        begin: u64,
        bytes: u64,
        shape: &[u64],
        stored: Reordering,
    ) -> Self {
        match stored.ordered(Rc::clone(&source), begin, bytes, shape) {
            None => Self::of_source(source, begin, bytes),
            Some(ordered) => Self::new(Place::Ordered {
                stored: SourceSpan {
                    source,
                    begin,
                    bytes,
                },
                ordered: SourceSpan {
                    source: ordered.into(),
                    begin: 0,
                    bytes,
                },
            }),
        }
    }

    /// Creates the payload of a flat tensor on the device: F32, or packed BF16.
    pub fn device(tensor: Tensor<1>) -> Self {
        Self::new(Place::Device(Box::new(tensor)))
    }

    /// Computes `left` plus (or minus) `right`, as unsigned words of `width` bytes, wrapping.
    pub(crate) fn words(left: Self, right: Self, width: u64, subtract: bool) -> Self {
        Self::new(Place::Words(Rc::new(Words {
            left,
            right,
            width,
            subtract,
        })))
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> u64 {
        match &self.place {
            Place::Owned(bytes) => bytes.len() as u64,
            Place::Span(span) | Place::Ordered { ordered: span, .. } => span.bytes,
            Place::Device(tensor) => (tensor.dims()[0] * tensor.dtype().size()) as u64,
            Place::Words(words) => words.left.len(),
        }
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes, if they are in memory.
    pub(crate) fn in_memory(&self) -> Option<&Rc<[u8]>> {
        if let Place::Owned(bytes) = &self.place {
            Some(bytes)
        } else {
            None
        }
    }

    /// Reads the bytes `range`, which is at most a piece long.
    pub(crate) async fn read(&self, range: Range<u64>) -> Result<Vec<u8>> {
        if range.is_empty() {
            return Ok(Vec::new());
        }
        match &self.place {
            // The range is inside a slice, so the offsets fit into `usize`.
            Place::Owned(bytes) => Ok(bytes[range.start as usize..range.end as usize].to_vec()),
            Place::Span(span) | Place::Ordered { ordered: span, .. } => span.read(&range),
            Place::Device(tensor) => {
                read_parts(&[Part {
                    tensor: tensor.as_ref().clone(),
                    bytes: range,
                }])
                .await
            }
            Place::Words(words) => Box::pin(words.read(range)).await,
        }
    }

    /// Returns the handle of a tensor on the device.
    pub(crate) fn on_device(&self) -> Option<&Tensor<1>> {
        if let Place::Device(tensor) = &self.place {
            Some(tensor)
        } else {
            None
        }
    }

    /// Returns the bytes as those of a file, if they are in memory or in one.
    pub(crate) fn span(&self) -> Option<SourceSpan> {
        match &self.place {
            Place::Owned(bytes) => {
                let source = Rc::new(MemorySource::new("", bytes.to_vec()));
                Some(SourceSpan {
                    source,
                    begin: 0,
                    bytes: bytes.len() as u64,
                })
            }
            Place::Span(span) | Place::Ordered { ordered: span, .. } => Some(span.clone()),
            Place::Device(_) | Place::Words(_) => None,
        }
    }

    /// Returns where the bytes are stored, in whatever order, if they are in a file.
    pub(crate) fn stored(&self) -> Option<&SourceSpan> {
        if let Place::Span(span) | Place::Ordered { stored: span, .. } = &self.place {
            Some(span)
        } else {
            None
        }
    }

    /// Returns the name of the file that they are in, without a path.
    pub(crate) fn file(&self) -> Option<&str> {
        self.stored().map(|span| base_name(span.source.name()))
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
        let whole = (PIECE_BYTES / unit).max(1) as u64 * unit as u64;
        let (mut at, end) = (0, self.len());
        while at < end {
            let now = whole.min(end - at);
            each(&self.read(at..at + now).await?)?;
            at += now;
        }
        Ok(())
    }

    /// Computes the SHA-256 of the bytes, which are read once; later calls reuse it.
    ///
    /// # Errors
    /// Errors of reading.
    pub async fn digest(&self) -> Result<Digest> {
        if let Some(sum) = self.sum().get() {
            return Ok(*sum);
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

    /// Returns the digest, if it is known.
    pub(crate) fn known_digest(&self) -> Option<Digest> {
        self.sum().get().copied()
    }

    /// Keeps the digest of the bytes.
    pub(crate) fn remember(&self, sum: Digest) {
        // A second digest is that of the same bytes.
        let _ = self.sum().set(sum);
    }

    /// Reads all bytes of a tensor that is known to be small.
    ///
    /// # Errors
    /// `source.too-large` for more than memory can hold.
    pub async fn bytes(&self) -> Result<Rc<[u8]>> {
        if let Place::Owned(bytes) = &self.place {
            return Ok(bytes.clone());
        }
        let too_large = || {
            Refusal::new(word!("source.too-large"))
                .stage("read")
                .expected("what memory can hold")
                .found(self.len())
        };
        let mut bytes = Vec::new();
        usize::try_from(self.len())
            .ok()
            .and_then(|len| bytes.try_reserve_exact(len).ok())
            .ok_or_else(too_large)?;
        self.for_each_piece(|piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })
        .await?;
        Ok(bytes.into())
    }
}

impl Words {
    /// Reads the bytes `range` of the result; they are computed from whole words.
    async fn read(&self, range: Range<u64>) -> Result<Vec<u8>> {
        let from = range.start / self.width * self.width;
        let to = range.end.next_multiple_of(self.width).min(self.left.len());
        let mut bytes = self.left.read(from..to).await?;
        let right = self.right.read(from..to).await?;
        let word = |a: u64, b| {
            if self.subtract {
                a.wrapping_sub(b)
            } else {
                a.wrapping_add(b)
            }
        };
        match self.width {
            1 => combine::<1>(&mut bytes, &right, word),
            2 => combine::<2>(&mut bytes, &right, word),
            4 => combine::<4>(&mut bytes, &right, word),
            _ => combine::<8>(&mut bytes, &right, word),
        }
        // This removes less than a word on either side.
        bytes.truncate((range.end - from) as usize);
        bytes.drain(..(range.start - from) as usize);
        Ok(bytes)
    }
}

/// Replaces each word of `N` bytes of `left` by the low bytes of `word` of both: addition modulo 2⁶⁴ is addition modulo 2⁸ᴺ there.
fn combine<const N: usize>(left: &mut [u8], right: &[u8], word: impl Fn(u64, u64) -> u64) {
    let wide = |bytes: &[u8; N]| {
        let mut all = [0; 8];
        all[..N].copy_from_slice(bytes);
        u64::from_le_bytes(all)
    };
    for (a, b) in left
        .as_chunks_mut::<N>()
        .0
        .iter_mut()
        .zip(right.as_chunks::<N>().0)
    {
        let sum = word(wide(a), wide(b)).to_le_bytes();
        a.copy_from_slice(&sum[..N]);
    }
}
