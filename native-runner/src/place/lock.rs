//! The lock of an output folder: a file that is locked by the process that writes into the folder, and contains its mark.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::disk::{TEMPORARY, TRIED, occupied, temporary};
use crate::error::{Result, RunError, unwritable};
use crate::files::is_at;

/// Name of the lock file.
pub const LOCK: &str = ".tabtune.lock";
/// Length of a mark in bytes.
const MARK_BYTES: u64 = 24;

/// A lock that is held until it is dropped, which removes its file, or until this process ends, however it ends.
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock of `folder` for the process of this mark, and removes temporary files that a killed process left under the mark in it.
    /// Returns `None` if the file system has no locks.
    ///
    /// # Errors
    /// `run.locked` if another process holds it, `output.occupied` if the name belongs to something else, `sink.write`.
    pub fn take(folder: &Path, mark: &str) -> Result<Option<Self>> {
        let path = folder.join(LOCK);
        let failed = |e: std::io::Error| unwritable(path.display(), e);
        let foreign = || {
            occupied(
                folder,
                format!("{LOCK} of somebody else, whose place the lock of this folder would take"),
            )
        };
        loop {
            // A link would lead to a file elsewhere.
            if path.symlink_metadata().is_ok_and(|meta| !meta.is_file()) {
                return Err(foreign());
            }
            let opened = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path);
            let file = opened.map_err(|e| not_opened(&path, e))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(RunError::Locked {
                        place: folder.display().to_string(),
                    });
                }
                Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {
                    return Ok(None);
                }
                Err(TryLockError::Error(error)) => return Err(failed(error).into()),
            }
            if !is_at(&file, &path) {
                // Its holder removed it between the two calls.
                continue;
            }
            // A process that was killed before it had written its mark left an empty file.
            let before = contents(&file)
                .filter(|text| text.is_empty() || is_mark(text))
                .ok_or_else(foreign)?;
            if !before.is_empty() {
                let left = folder.join(temporary(&before));
                let _ = fs::remove_dir_all(&left);
                for ending in TRIED.into_iter().chain(["json"]) {
                    let _ = fs::remove_file(left.with_extension(ending));
                }
            }
            // From here on the file is this process's own, and is removed again if the mark cannot be written, as on a full disk.
            let mut lock = Self {
                file,
                path: path.clone(),
            };
            let written = lock
                .file
                .seek(SeekFrom::Start(0))
                .and_then(|_| lock.file.write_all(mark.as_bytes()));
            written
                .and_then(|()| lock.file.sync_all())
                .map_err(failed)?;
            return Ok(Some(lock));
        }
    }

    /// Returns true if the file is still in its folder, so that other processes find it.
    pub fn is_held(&self) -> bool {
        is_at(&self.file, &self.path)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // If the folder was removed and made again, a file of this name may be the lock of another process.
        if self.is_held() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes the temporary folders in `folder` whose processes were killed: nobody holds the lock in them; and the files with which
/// processes that are gone tried out the folder. What cannot be removed stays.
pub fn remove_left(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().and_then(|name| name.strip_prefix(TEMPORARY)) else {
            continue;
        };
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        let of_file = name
            .split_once('.')
            .filter(|(mark, ending)| kind.is_file() && is_mark(mark) && TRIED.contains(ending));
        if let Some((mark, _)) = of_file.filter(|(mark, _)| is_gone(mark)) {
            // A file of the user has other contents.
            let own = |text: String| text.is_empty() || text == mark;
            if File::open(entry.path())
                .ok()
                .and_then(|file| contents(&file))
                .is_some_and(own)
            {
                let _ = fs::remove_file(entry.path());
            }
        }
        let Some(mark) = Some(name).filter(|mark| kind.is_dir() && is_mark(mark)) else {
            continue;
        };
        // A process writes its mark into the file once it has locked it.
        let left = File::open(entry.path().join(LOCK))
            .ok()
            .filter(|file| contents(file).as_deref() == Some(mark));
        if left.is_some_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Reads a lock file. Returns `None` for contents that are longer than a mark or no text.
fn contents(file: &File) -> Option<String> {
    let mut text = String::new();
    file.take(MARK_BYTES + 1).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Returns true if the process of a mark, which begins with its number, is known to have ended; only Linux tells.
fn is_gone(mark: &str) -> bool {
    let number = mark
        .get(..8)
        .and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let processes = Path::new("/proc");
    processes.join("self").exists()
        && number.is_some_and(|number| !processes.join(number.to_string()).exists())
}

fn is_mark(text: &str) -> bool {
    text.len() as u64 == MARK_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Makes the error for a lock file that cannot be opened. One that exists and is closed belongs to another user.
fn not_opened(path: &Path, error: std::io::Error) -> tabtune::Error {
    if error.kind() == ErrorKind::PermissionDenied && path.exists() {
        let hint = "it is the lock of another user, whose process writes here or was killed: if no process writes here, remove this file";
        return unwritable(path.display(), format!("{error}: {hint}"));
    }
    unwritable(path.display(), error)
}
