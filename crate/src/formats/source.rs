//! Sources and sinks of bytes. The crate itself opens no file.

use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::checksum::{Digest, Hasher};
use super::refuse::too_large;
use crate::error::{Error, Refusal, Result, word};

/// Maximum size of a single read of a payload.
pub const CHUNK_BYTES: usize = 4 << 20;

/// Commit of a repository of the Hugging Face Hub, or of a mirror, that files came from ([example](crate::portable)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HubOrigin {
    /// `owner/name`.
    pub repo: String,
    /// Branch, tag or commit that was asked for, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The commit: 40 hexadecimal digits.
    pub commit: String,
}

/// Random access to the bytes of one file. Reads are exact: a source that cannot fill the buffer returns an error ([example](crate)).
pub trait ByteSource {
    /// Name of the file, for messages and to distinguish the files of a folder; it is never used as a path.
    fn name(&self) -> &str;
    /// Number of bytes in the file.
    fn len(&self) -> u64;
    /// Fills `buf` with the bytes from `offset` on.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;
    /// SHA-256 of each piece of 8 MiB, the last one shorter, if the owner of the file has computed them.
    #[doc(hidden)]
    fn pieces(&self) -> Option<Vec<Digest>> {
        None
    }
    /// Commit of a repository that the file came from, if the owner of the file knows it.
    #[doc(hidden)]
    fn hub(&self) -> Option<HubOrigin> {
        None
    }
    /// True if the file has no bytes.
    #[doc(hidden)]
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for dyn ByteSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} bytes)", self.name(), self.len())
    }
}

/// Makes pointers to a source sources themselves.
macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<S: ByteSource + ?Sized> ByteSource for $pointer {
            fn name(&self) -> &str {
                (**self).name()
            }
            fn len(&self) -> u64 {
                (**self).len()
            }
            fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
                (**self).read_at(offset, buf)
            }
            fn pieces(&self) -> Option<Vec<Digest>> {
                (**self).pieces()
            }
            fn hub(&self) -> Option<HubOrigin> {
                (**self).hub()
            }
        }
    )*};
}

forward!(Box<S>, &S, Rc<S>);

/// A file held in memory ([example](crate)).
#[derive(Debug, Clone)]
pub struct MemorySource {
    name: String,
    bytes: Vec<u8>,
}

impl MemorySource {
    /// Creates a file `name` with these bytes.
    pub fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            name: name.into(),
            bytes: bytes.into(),
        }
    }
}

impl ByteSource for MemorySource {
    fn name(&self) -> &str {
        &self.name
    }
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let found = usize::try_from(offset)
            .ok()
            .and_then(|start| self.bytes.get(start..)?.get(..buf.len()));
        match found {
            Some(bytes) => {
                buf.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(past_end(self, offset, buf.len() as u64)),
        }
    }
}

/// Destination that takes bytes in order.
pub trait ByteSink {
    /// Takes the next bytes.
    fn write(&mut self, bytes: &[u8]) -> Result<()>;
    /// Ends the output: everything was written.
    fn finish(&mut self) -> Result<()>;
}

impl ByteSink for Vec<u8> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

fn past_end<S: ByteSource + ?Sized>(source: &S, offset: u64, count: u64) -> Error {
    truncated(
        source.name(),
        offset,
        count,
        source.len().saturating_sub(offset),
    )
}

/// Error of a source that has fewer bytes from `offset` on than requested: it is shorter than it claimed.
pub fn truncated(name: &str, offset: u64, need: u64, have: u64) -> Error {
    let refusal = Refusal::new(word!("source.truncated"))
        .stage("read")
        .of(name)
        .at(offset);
    refusal.expected(format!("{need} bytes")).found(have).into()
}

/// Calls `each` with the bytes `begin..end` in pieces that are multiples of `unit` bytes, through one reused buffer.
pub(crate) fn for_each_chunk(
    source: &dyn ByteSource,
    begin: u64,
    end: u64,
    unit: usize,
    mut each: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let unit = unit.max(1);
    let whole = (CHUNK_BYTES / unit).max(1) * unit;
    let all = end
        .checked_sub(begin)
        .ok_or_else(|| past_end(source, begin, 0))?;
    if end > source.len() {
        return Err(past_end(source, begin, all));
    }
    // Both lengths are at most that of a chunk.
    let mut buffer = vec![0u8; all.min(whole as u64) as usize];
    let mut at = begin;
    while at < end {
        let now = (end - at).min(whole as u64);
        let piece = &mut buffer[..now as usize];
        source.read_at(at, piece)?;
        each(piece)?;
        at += now;
    }
    Ok(())
}

/// An empty list with room for `count` items; `None` if memory cannot hold it.
pub(crate) fn reserved<T>(count: u64) -> Option<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(usize::try_from(count).ok()?).ok()?;
    Some(list)
}

/// Reads the bytes `begin..end` of a file whole.
///
/// # Errors
/// `source.too-large` if memory cannot hold them, and the errors of the source.
pub(super) fn read_range(source: &dyn ByteSource, begin: u64, end: u64) -> Result<Vec<u8>> {
    let count = end.saturating_sub(begin);
    let mut bytes = reserved(count).ok_or_else(|| {
        too_large()
            .of(source.name())
            .expected("what memory can hold")
            .found(count)
    })?;
    for_each_chunk(source, begin, end, 1, |piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    })?;
    Ok(bytes)
}

/// Computes the SHA-256 of the bytes `begin..end` of a file, read piece by piece.
pub(crate) fn sha256_of(source: &dyn ByteSource, begin: u64, end: u64) -> Result<Digest> {
    let mut sum = Hasher::new();
    for_each_chunk(source, begin, end, 1, |piece| {
        sum.update(piece);
        Ok(())
    })?;
    Ok(sum.finish())
}

/// Bytes of a file that are written unchanged.
#[derive(Debug, Clone)]
pub struct SourceSpan {
    /// The file.
    pub(crate) source: Rc<dyn ByteSource>,
    /// Position of the first byte.
    pub(crate) begin: u64,
    /// Number of bytes.
    pub(crate) bytes: u64,
}

impl SourceSpan {
    /// Reads the bytes `range` of the span.
    pub(crate) fn read(&self, range: &Range<u64>) -> Result<Vec<u8>> {
        read_range(
            &self.source,
            self.begin + range.start,
            self.begin + range.end,
        )
    }
}
