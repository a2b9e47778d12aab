//! A file as a source of the crate.

use std::fs::{File, FileType};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use tabtune::formats::{ByteSource, HubOrigin, truncated};

use super::hub::origin_of;
use crate::error::unreadable;

/// A file that the crate reads in ranges.
#[derive(Debug)]
pub struct FileSource {
    pub(super) name: String,
    path: PathBuf,
    pub(super) file: File,
    len: u64,
}

impl FileSource {
    /// Opens `path`. The source is named by the last part of the path.
    ///
    /// # Errors
    /// `source.read` if `path` cannot be opened or is not a file.
    pub fn open(path: &Path) -> tabtune::Result<Self> {
        check_kind(path)?;
        let file = File::open(path).map_err(|e| unreadable(path.display(), e))?;
        let meta = file.metadata().map_err(|e| unreadable(path.display(), e))?;
        Ok(Self {
            name: file_name(path),
            path: path.to_path_buf(),
            file,
            len: meta.len(),
        })
    }

    /// Returns the path at which the file was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl ByteSource for FileSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn hub(&self) -> Option<HubOrigin> {
        origin_of(&self.path)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> tabtune::Result<()> {
        let mut file = &self.file;
        let failed = |e: std::io::Error| unreadable(self.path.display(), e);
        file.seek(SeekFrom::Start(offset)).map_err(failed)?;
        match file.read_exact(buf) {
            // The file was shortened after it had been opened.
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => {
                let len = file.metadata().map_err(failed)?.len();
                Err(truncated(
                    &self.name,
                    offset,
                    buf.len() as u64,
                    len.saturating_sub(offset),
                ))
            }
            other => other.map_err(failed),
        }
    }
}

/// Refuses a path that leads to something other than a file, before it is opened: opening a pipe waits for somebody who writes into it, and
/// none of these can be read twice.
///
/// # Errors
/// `source.read`. A path that leads nowhere is reported when it is opened.
pub fn check_kind(path: &Path) -> tabtune::Result<()> {
    match std::fs::metadata(path) {
        Ok(meta) if !meta.is_file() => Err(unreadable(
            path.display(),
            format!("expected a file, found {}", kind(meta.file_type())),
        )),
        _ => Ok(()),
    }
}

#[cfg(unix)]
fn kind(found: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match found {
        found if found.is_dir() => "a folder",
        found if found.is_fifo() => "a pipe: read it into a file first",
        found if found.is_socket() => "a socket: read it into a file first",
        _ => "a device: read it into a file first",
    }
}

#[cfg(not(unix))]
fn kind(found: FileType) -> &'static str {
    if found.is_dir() {
        "a folder"
    } else {
        "a device: read it into a file first"
    }
}

/// Returns the last part of a path as text.
pub fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(
        || path.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    )
}
