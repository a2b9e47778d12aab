//! Reads a GGUF header sequentially through a buffer, so that nothing beyond it is read and no memory is reserved because of a stated length.

use crate::error::{Refusal, Result, Word, word};
use crate::formats::checksum::{Digest, Hasher};
use crate::formats::refuse_if;
use crate::formats::source::ByteSource;

const WINDOW_BYTES: usize = 64 << 10;

pub(crate) struct Cursor<'a> {
    source: &'a dyn ByteSource,
    len: u64,
    at: u64,
    window: Vec<u8>,
    window_at: u64,
    read: Hasher,
}

/// Creates a refusal with this code.
pub(crate) fn refuse(code: Word) -> Refusal {
    Refusal::new(code)
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(source: &'a dyn ByteSource) -> Self {
        Self {
            source,
            len: source.len(),
            at: 0,
            window: Vec::new(),
            window_at: 0,
            read: Hasher::new(),
        }
    }

    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    fn truncated(&self, need: u64) -> Refusal {
        refuse(word!("gguf.header.truncated"))
            .expected(format!("{need} more bytes"))
            .found(self.len - self.at)
            .at(self.at)
    }

    /// Appends the next `count` bytes to `out`; the file's length is checked before anything grows.
    pub(crate) fn append(&mut self, count: u64, out: &mut Vec<u8>) -> Result<()> {
        refuse_if(count > self.len - self.at, || self.truncated(count))?;
        let mut left = count;
        while left > 0 {
            let skip = usize::try_from(self.at - self.window_at).unwrap_or(usize::MAX);
            if skip >= self.window.len() {
                self.fill()?;
                continue;
            }
            let have = &self.window[skip..];
            let now = usize::try_from(left).map_or(have.len(), |left| left.min(have.len()));
            out.extend_from_slice(&have[..now]);
            self.read.update(&have[..now]);
            self.at += now as u64;
            left -= now as u64;
        }
        Ok(())
    }

    /// Computes the SHA-256 of all bytes before `end`, or before the end of the file; the missing ones are read for it.
    pub(crate) fn sha256_to(mut self, end: u64) -> Result<Digest> {
        self.append(end.min(self.len).saturating_sub(self.at), &mut Vec::new())?;
        Ok(self.read.finish())
    }

    fn fill(&mut self) -> Result<()> {
        let left = self.len - self.at;
        let size = usize::try_from(left).map_or(WINDOW_BYTES, |left| left.min(WINDOW_BYTES));
        self.window.resize(size, 0);
        self.window_at = self.at;
        self.source.read_at(self.at, &mut self.window)
    }

    fn exact<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = Vec::with_capacity(N);
        self.append(N as u64, &mut bytes)?;
        bytes
            .try_into()
            .map_err(|_| self.truncated(N as u64).into())
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.exact()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.exact()?))
    }

    /// Reads a name of a key or a tensor. Its codes are those of a length above `limit`, and of bytes that are not UTF-8.
    pub(crate) fn name(&mut self, limit: u64, [length, utf8]: [Word; 2]) -> Result<String> {
        let at = self.at;
        let mut bytes = Vec::new();
        self.text(limit, length, "", &mut bytes)?;
        let name = String::from_utf8(bytes.split_off(8));
        name.map_err(|_| refuse(utf8).at(at).into())
    }

    /// Reads a length and as many bytes, those of a value of `key`, if there is one. A length above `limit` is refused with `code` before it
    /// is compared with the remaining bytes.
    pub(crate) fn text(
        &mut self,
        limit: u64,
        code: Word,
        key: &str,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let at = self.at;
        let count = self.u64()?;
        if count > limit {
            let refusal = refuse(code)
                .expected(format!("at most {limit} bytes"))
                .found(count)
                .at(at);
            return Err(match key {
                "" => refusal.into(),
                key => refusal.subject(key).into(),
            });
        }
        out.extend_from_slice(&count.to_le_bytes());
        self.append(count, out)
    }
}
