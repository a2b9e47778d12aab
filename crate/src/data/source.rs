//! Files of data, read in order, and storage for tokens that are too many for memory.

use std::io::{self, Read};

use crate::error::{Error, Result};

/// A file of training data, which may be read more than once.
pub trait DataSource {
    /// Its name, which is a hint of its form.
    fn name(&self) -> &str;
    /// Reads it from its beginning.
    ///
    /// # Errors
    /// Fails where the file does; a reader gives an [`Error`] inside of its [`io::Error`] as it is.
    fn open(&self) -> Result<Box<dyn Read + '_>>;
}

/// Bytes in memory with a name.
#[derive(Debug, Clone, Copy)]
pub struct DataFile<'a> {
    /// Its name, which is a hint of its form.
    pub name: &'a str,
    /// Its contents.
    pub bytes: &'a [u8],
}

impl DataSource for DataFile<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn open(&self) -> Result<Box<dyn Read + '_>> {
        Ok(Box::new(self.bytes))
    }
}

/// The error of reading the file `name`.
pub(super) fn unreadable(error: io::Error, name: &str) -> Error {
    let reason = error.to_string();
    let inside = error.into_inner().and_then(|inside| inside.downcast::<Error>().ok());
    inside.map_or_else(|| Error::SourceRead { name: name.to_owned(), reason }, |inside| *inside)
}

/// Where tokens are kept that are too many for memory: bytes that are appended, then read by range.
pub trait TokenStorage {
    /// Takes the next bytes. → the offset at which they are.
    fn append(&self, bytes: &[u8]) -> Result<u64>;
    /// Fills `buf` with the bytes from `offset` on.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;
}
