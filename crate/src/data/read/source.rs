//! Data files, read in order, and storage for tokens that do not fit into memory.

use std::future::Future;
use std::io::{self, Read};
use std::pin::Pin;

use crate::error::{Error, Result};
use crate::interrupt::Interrupt;

/// A file of training data, which may be read more than once ([example](crate)).
pub trait DataSource {
    /// Returns its name, which is a hint of its form.
    fn name(&self) -> &str;
    /// Opens it for reading from its beginning.
    ///
    /// # Errors
    /// Errors of the file. A reader may wrap an [`Error`] in its [`io::Error`], which is passed on unchanged.
    fn open(&self) -> Result<Box<dyn Read + '_>>;
    /// Fetches what its reader will read next, where that takes waiting; `None` if there is nothing to wait for. An error is left to the
    /// read.
    fn read_ahead(&self) -> Option<Pin<Box<dyn Future<Output = ()> + '_>>> {
        None
    }
}

/// Lets other work run between two pieces of a file, and waits for what is read next of it.
pub(crate) async fn pause(source: Option<&dyn DataSource>, interrupt: &Interrupt) -> Result<()> {
    interrupt.pause().await?;
    if let Some(fetched) = source.and_then(DataSource::read_ahead) {
        fetched.await;
    }
    Ok(())
}

/// Bytes in memory with a name ([example](crate)).
#[derive(Debug, Clone, Copy)]
pub struct DataFile<'a> {
    /// Name of the file, which is a hint of its form.
    pub name: &'a str,
    /// Contents of the file.
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

/// Converts the error of reading the file `name`.
pub(crate) fn unreadable(error: io::Error, name: &str) -> Error {
    let reason = error.to_string();
    let inside = error
        .into_inner()
        .and_then(|inside| inside.downcast::<Error>().ok());
    inside.map_or_else(
        || Error::SourceRead {
            name: name.to_owned(),
            reason,
        },
        |inside| *inside,
    )
}

/// Storage for tokens that do not fit into memory: bytes are appended, then read by range.
pub trait TokenStorage {
    /// Appends bytes, and returns the offset at which they are stored.
    ///
    /// # Errors
    /// Errors of the storage.
    fn append(&self, bytes: &[u8]) -> Result<u64>;
    /// Fills `buf` with the bytes from `offset` on.
    ///
    /// # Errors
    /// Errors of the storage.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;
}
