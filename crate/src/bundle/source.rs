//! Sources and sinks of bytes. The crate itself opens no file.

use std::ops::Range;
use std::rc::Rc;

use super::refusal::known_mark;
use super::sha256::Digest;
use crate::error::{Error, Refusal, Result, word};

/// Largest single read of a payload.
pub const CHUNK_BYTES: usize = 4 << 20;

/// Random access to the bytes of one file. Reads are exact: a source that cannot fill the buffer is an error.
pub trait ByteSource {
    /// Name of the file, for messages and to tell the files of a folder apart; never used as a path.
    fn name(&self) -> &str;
    /// Bytes in the file.
    fn len(&self) -> u64;
    /// Fills `buf` with the bytes from `offset` on.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;
    /// The SHA-256 of each piece of 8 MiB, the last one shorter, where the owner of the file has computed them.
    fn pieces(&self) -> Option<Vec<Digest>> {
        None
    }
    /// No bytes at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<S: ByteSource + ?Sized> ByteSource for Box<S> {
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
}

impl<S: ByteSource + ?Sized> ByteSource for &S {
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
}

impl<S: ByteSource + ?Sized> ByteSource for Rc<S> {
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
}

/// A file held in memory.
#[derive(Debug, Clone)]
pub struct MemorySource {
    name: String,
    bytes: Vec<u8>,
}

impl MemorySource {
    /// The file `name` with these bytes.
    pub fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), bytes: bytes.into() }
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
        let found = usize::try_from(offset).ok().and_then(|start| self.bytes.get(start..)?.get(..buf.len()));
        match found {
            Some(bytes) => {
                buf.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(past_end(self, offset, buf.len() as u64)),
        }
    }
}

/// Takes bytes in order.
pub trait ByteSink {
    /// Takes the next bytes.
    fn write(&mut self, bytes: &[u8]) -> Result<()>;
    /// Everything was written.
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
    truncated(source.name(), offset, count, source.len().saturating_sub(offset))
}

/// The refusal of a source that has fewer bytes from `offset` on than were asked for: it is shorter than it claimed.
pub fn truncated(name: &str, offset: u64, need: u64, have: u64) -> Error {
    let refusal = Refusal::new(word!("source.truncated")).stage("read").of(name).at(offset);
    refusal.expected(format!("{need} bytes")).found(have).into()
}

/// Reads a whole file.
pub fn read_whole(source: &dyn ByteSource) -> Result<Vec<u8>> {
    read_document(source, u64::MAX)
}

/// Last part of a name that may carry folders in front.
pub(crate) fn base_name(name: &str) -> &str {
    name.rsplit(['/', '\\']).next().unwrap_or(name)
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
    let mut left = end.checked_sub(begin).ok_or_else(|| past_end(source, begin, 0))?;
    if end > source.len() {
        return Err(past_end(source, begin, left));
    }
    let mut at = begin;
    let mut buffer = vec![0u8; usize::try_from(left).map_or(whole, |left| left.min(whole))];
    while left > 0 {
        let now = usize::try_from(left).map_or(whole, |left| left.min(whole));
        let piece = &mut buffer[..now];
        source.read_at(at, piece)?;
        each(piece)?;
        at += now as u64;
        left -= now as u64;
    }
    Ok(())
}

/// Reads a whole document of at most `limit` bytes.
pub(crate) fn read_document(source: &dyn ByteSource, limit: u64) -> Result<Vec<u8>> {
    if source.len() > limit {
        let refusal =
            Refusal::new(word!("source.too-large")).of(source.name()).expected(format!("at most {limit} bytes")).found(source.len());
        return Err(refusal.into());
    }
    let too_large = || Refusal::new(word!("source.too-large")).of(source.name()).expected("what memory can hold").found(source.len());
    let mut bytes = Vec::new();
    usize::try_from(source.len()).ok().and_then(|len| bytes.try_reserve_exact(len).ok()).ok_or_else(too_large)?;
    for_each_chunk(source, 0, source.len(), 1, |piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    })?;
    if source.name().to_ascii_lowercase().ends_with(".json") {
        refuse_other_document(source, &bytes)?;
    }
    Ok(bytes)
}

/// Refuses what lies under the name of a JSON document when a download went wrong.
fn refuse_other_document(source: &dyn ByteSource, bytes: &[u8]) -> Result<()> {
    let refusal = Refusal::new(word!("format.mismatch")).of(source.name()).expected("JSON");
    let refusal = match known_mark(source) {
        _ if bytes.trim_ascii().is_empty() => refusal.found("an empty file").hint("the download went wrong: fetch the file again"),
        Some("html") => refusal.found("html").hint("this is a page of HTML, not JSON: the download went wrong"),
        Some("git-lfs-pointer") => refusal.found("git-lfs-pointer").hint("this is a pointer; fetch the real file with git lfs pull"),
        _ => return Ok(()),
    };
    Err(refusal.into())
}

/// Bytes of a file that are written as they are.
#[derive(Clone)]
pub(crate) struct SourceSpan {
    /// The file.
    pub(crate) source: Rc<dyn ByteSource>,
    /// The first byte.
    pub(crate) begin: u64,
    /// How many.
    pub(crate) bytes: u64,
}

impl std::fmt::Debug for SourceSpan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes of {} from {} on", self.bytes, self.source.name(), self.begin)
    }
}

impl SourceSpan {
    /// The bytes `range` of the span.
    pub(crate) fn read(&self, range: &Range<u64>) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for_each_chunk(&self.source, self.begin + range.start, self.begin + range.end, 1, |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(bytes)
    }
}
