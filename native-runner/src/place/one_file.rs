//! An output location for a single file.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tabtune::bundle::FileStream;

use super::Folder;
use super::disk::{
    check_room, fill, flush_folder, make_folder, mark, occupied, parent, remove_empty, rename,
    temporary, try_out,
};
use super::lock::{Lock, remove_left};
use crate::error::{Result, RunError, unwritable};
use crate::signals::Signals;

/// A file that does not exist yet, and the receipt that may be written next to it.
pub struct OneFile {
    path: PathBuf,
    mark: String,
    /// Folders that were created for the file, the deepest first.
    created: Vec<PathBuf>,
}

impl Drop for OneFile {
    fn drop(&mut self) {
        remove_empty(&self.created);
    }
}

impl OneFile {
    /// Checks that `path` is free and that its folder can be written to. Removes what killed processes left there of such files.
    ///
    /// # Errors
    /// `output.occupied` if something has this name or that of the receipt; `sink.write` if nothing can be written there.
    pub fn new(path: &Path) -> Result<Self> {
        if path.file_name().is_none() {
            return Err(unwritable(path.display(), "expected the name of a file").into());
        }
        let mut file = Self {
            path: path.to_path_buf(),
            mark: mark(),
            created: Vec::new(),
        };
        file.check_free()?;
        file.created = make_folder(parent(path))?;
        remove_left(parent(path));
        try_out(parent(path), &file.mark)?;
        Ok(file)
    }

    /// Writes the one file of `stream`, and its receipt as `<path>.receipt.json`. Returns the paths of the files.
    ///
    /// # Errors
    /// `output.occupied`, `sink.write`, `cli.ended` if a signal comes before the files are in place.
    pub fn write(&self, stream: &mut FileStream) -> Result<Vec<PathBuf>> {
        let signals = Signals::listen().map_err(RunError::Signals)?;
        // The lock is one more file.
        check_room(
            parent(&self.path),
            stream.files().len() + 1,
            stream.files().iter().map(|file| file.bytes).sum(),
        )?;
        let part = parent(&self.path).join(temporary(&self.mark));
        let names: Vec<PathBuf> = stream
            .files()
            .iter()
            .map(|file| part.join(&file.name))
            .collect();
        fs::create_dir(&part).map_err(|e| unwritable(part.display(), e))?;
        // The lock ends with this process: if it is killed, a later one finds that the folder is left.
        let written = Lock::take(&part, &self.mark).and_then(|_lock| {
            fill(&part, false, stream, Some(&signals))?;
            self.check_free()?;
            names
                .iter()
                .zip(self.places())
                .try_for_each(|(written, place)| rename(written, &place))
        });
        // The first failure is the one to report.
        let removed = fs::remove_dir_all(&part);
        written?;
        removed.map_err(|e| unwritable(part.display(), e))?;
        flush_folder(parent(&self.path))?;
        Ok(self.places().into_iter().take(names.len()).collect())
    }

    fn places(&self) -> [PathBuf; 2] {
        let mut receipt: OsString = self.path.file_name().unwrap_or_default().to_os_string();
        receipt.push(".receipt.json");
        [self.path.clone(), self.path.with_file_name(receipt)]
    }

    fn check_free(&self) -> Result<()> {
        for place in self.places() {
            match place.symlink_metadata() {
                Ok(_) => return Err(occupied(&place, "something of this name".into())),
                // The file system may not take a name of this length.
                Err(error) if error.kind() == ErrorKind::InvalidFilename => {
                    return Err(unwritable(place.display(), error).into());
                }
                Err(_) => {}
            }
        }
        Ok(())
    }
}

/// Output location of a command that writes once.
pub enum Place {
    /// A folder.
    Folder(Folder),
    /// A file.
    File(OneFile),
}

impl Place {
    /// Writes the files of `stream`. Returns their paths.
    ///
    /// # Errors
    /// `output.occupied`, `sink.write`, `cli.ended` if a signal comes first.
    pub fn write(&mut self, stream: &mut FileStream) -> Result<Vec<PathBuf>> {
        match self {
            Self::Folder(folder) => {
                folder.check_room(stream, stream.files().iter().map(|file| file.bytes).sum())?;
                folder.write(stream)
            }
            Self::File(file) => file.write(stream),
        }
    }
}
