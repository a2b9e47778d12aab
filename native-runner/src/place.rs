//! Output locations of the commands. Existing files are left alone: only files that a checkpoint's own manifest names are replaced or removed,
//! and temporary ones that carry this process's mark.

mod contents;
mod disk;
mod lock;
mod one_file;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use tabtune::bundle::FileStream;
use tabtune::checkpoint::{MANIFEST, Manifest, read_manifest};

use self::contents::named_by;
use self::disk::{
    check_room, fill, flush_folder, make_folder, mark, occupied, remove_empty, remove_file, rename,
    temporary, try_names, try_out,
};
use self::lock::{Lock, remove_left};
pub use self::one_file::{OneFile, Place};
use crate::error::{Result, RunError, unwritable};
use crate::files::{COMPLETE, FileSource};
use crate::signals::Signals;

/// A folder that only this process writes into.
pub struct Folder {
    path: PathBuf,
    /// True if the folder is for checkpoints, each of which replaces the last one; false if it is written once.
    checkpoints: bool,
    /// Folders that were created for this process, the deepest first.
    created: Vec<PathBuf>,
    mark: String,
    /// Lock of the folder. `None` if the file system has no locks.
    lock: Option<Lock>,
    /// True once the contents were checked under this lock.
    entered: bool,
    /// Names of the files that belong to the folder's checkpoint, as it was found and as this process has saved it since. The manifest belongs
    /// to it too.
    own: Vec<String>,
}

impl Folder {
    /// Claims a folder for checkpoints: a new or empty one, or that of a checkpoint.
    ///
    /// # Errors
    /// `output.occupied` if there are other contents, `run.locked` if another process writes there, `sink.write` if nothing can be written.
    pub fn for_checkpoints(path: &Path) -> Result<Self> {
        Self::claim(path, true)
    }

    /// Claims a new or empty folder for one output.
    ///
    /// # Errors
    /// As for [`Folder::for_checkpoints`].
    pub fn for_output(path: &Path) -> Result<Self> {
        Self::claim(path, false)
    }

    fn claim(path: &Path, checkpoints: bool) -> Result<Self> {
        let mut folder = Self {
            path: path.to_path_buf(),
            checkpoints,
            created: Vec::new(),
            mark: mark(),
            lock: None,
            entered: false,
            own: Vec::new(),
        };
        folder.enter()?;
        try_out(path, &folder.mark)?;
        Ok(folder)
    }

    /// Makes the folder if it does not exist, takes its lock, and checks its contents.
    fn enter(&mut self) -> Result<()> {
        self.created.extend(make_folder(&self.path)?);
        self.lock = Lock::take(&self.path, &self.mark)?;
        remove_left(&self.path);
        if self.lock.is_none() {
            log::warn!(
                "{}: the file system has no locks: nothing keeps a second process out",
                self.path.display()
            );
        }
        self.check_contents()?;
        self.entered = true;
        Ok(())
    }

    /// The folder's path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that these files can be written: none would replace a foreign file, each can be created, and the file system has room for so
    /// many bytes.
    ///
    /// # Errors
    /// `output.occupied`; `sink.write`, with the free bytes if there are too few.
    pub fn check_room(&self, stream: &FileStream, bytes: u64) -> Result<()> {
        self.check_names(stream)?;
        check_room(&self.path, stream.files().len(), bytes)?;
        try_names(&self.path, &self.mark, stream)
    }

    /// Writes the files of `stream`, either all of them or none. Returns their paths. A folder that was removed is made again.
    ///
    /// # Errors
    /// `output.occupied`, `run.locked`, `sink.write`, `cli.ended` if a signal comes, and errors of the stream.
    pub fn write(&mut self, stream: &mut FileStream) -> Result<Vec<PathBuf>> {
        if !self.entered
            || !self
                .lock
                .as_ref()
                .map_or_else(|| self.path.is_dir(), Lock::is_held)
        {
            log::warn!(
                "{}: the folder, or its lock, was removed since it was claimed: it is made and locked again",
                self.path.display()
            );
            // Nothing in it is known to be this run's any more.
            (self.entered, self.lock, self.own) = (false, None, Vec::new());
            self.enter()?;
        }
        self.check_names(stream)?;
        // A training run handles its signals itself, and saves the steps that it has made.
        let signals = if self.checkpoints {
            None
        } else {
            Some(Signals::listen().map_err(RunError::Signals)?)
        };
        let names: Vec<String> = stream
            .files()
            .iter()
            .map(|file| file.name.clone())
            .collect();
        let part = self.path.join(temporary(&self.mark));
        fs::create_dir(&part).map_err(|e| unwritable(part.display(), e))?;
        let filled = fill(&part, self.checkpoints, stream, signals.as_ref());
        let placed = filled.and_then(|()| {
            if self.checkpoints {
                self.replace(&part, &names)
            } else {
                self.move_up(&part, &names)
            }
        });
        if placed.is_err() {
            // The first failure is the one to report. Remaining files carry this process's mark.
            let _ = fs::remove_dir_all(&part);
        }
        placed?;
        Ok(names.iter().map(|name| self.path.join(name)).collect())
    }

    /// Replaces the manifest of the folder's checkpoint with what `change` makes of it.
    ///
    /// # Errors
    /// `source.read`, `sink.write`, and errors of `change`.
    pub fn change_manifest(
        &self,
        change: impl FnOnce(&FileSource) -> tabtune::Result<Vec<u8>>,
    ) -> Result<()> {
        let (manifest, part) = (
            self.path.join(MANIFEST),
            self.path.join(format!("{}.json", temporary(&self.mark))),
        );
        let bytes = change(&FileSource::open(&manifest)?)?;
        let written = File::create(&part)
            .and_then(|mut file| file.write_all(&bytes).and_then(|()| file.sync_all()));
        written.map_err(|e| unwritable(part.display(), e))?;
        rename(&part, &manifest)?;
        flush_folder(&self.path)
    }

    /// True if the folder has a manifest, also one whose files are not all moved to their places yet.
    pub fn has_checkpoint(&self) -> bool {
        self.manifests().next().is_some()
    }

    /// Returns the manifest of the folder's checkpoint, if there is one.
    ///
    /// # Errors
    /// `source.read`, or `checkpoint.*` for a manifest that cannot be used.
    pub fn manifest(&self) -> Result<Option<Manifest>> {
        let Some(manifest) = self.manifests().next() else {
            return Ok(None);
        };
        Ok(Some(read_manifest(&FileSource::open(&manifest)?)?))
    }

    /// Makes the error for contents that must not be replaced.
    pub fn occupied(&self, found: String) -> RunError {
        occupied(&self.path, found)
    }

    /// Makes the complete files in `part` the checkpoint of the folder. A single rename decides this: from then on readers find them, moved to
    /// their places or not.
    fn replace(&mut self, part: &Path, names: &[String]) -> Result<()> {
        self.move_complete()?;
        rename(part, &self.path.join(COMPLETE))?;
        self.own
            .extend(names.iter().filter(|name| *name != MANIFEST).cloned());
        flush_folder(&self.path)?;
        self.move_complete()
    }

    /// Moves the files of a complete checkpoint to their places, the manifest last, and removes files that only the previous checkpoint named.
    /// Finishes the work of an earlier process that was killed here.
    fn move_complete(&mut self) -> Result<()> {
        let complete = self.path.join(COMPLETE);
        if !complete.is_dir() {
            return Ok(());
        }
        let manifest = complete.join(MANIFEST);
        if manifest.is_file() {
            let new = named_by(&manifest)?;
            for name in new.iter().filter(|name| complete.join(name).is_file()) {
                rename(&complete.join(name), &self.path.join(name))?;
            }
            for name in self.own.iter().filter(|name| !new.contains(name)) {
                remove_file(&self.path.join(name))?;
            }
            rename(&manifest, &self.path.join(MANIFEST))?;
            flush_folder(&self.path)?;
            self.own = new;
        }
        fs::remove_dir(&complete).map_err(|e| unwritable(complete.display(), e).into())
    }

    fn move_up(&self, part: &Path, names: &[String]) -> Result<()> {
        for name in names {
            let place = self.path.join(name);
            place
                .parent()
                .map_or(Ok(()), fs::create_dir_all)
                .map_err(|e| unwritable(place.display(), e))?;
            rename(&part.join(name), &place)?;
        }
        // Folders that names began with are left in it, empty.
        fs::remove_dir_all(part).map_err(|e| unwritable(part.display(), e))?;
        flush_folder(&self.path)
    }

    /// Iterates over the folder's own manifests: first that of a checkpoint whose files are not all moved yet, then the one in its place.
    fn manifests(&self) -> impl Iterator<Item = PathBuf> {
        let all = [
            self.path.join(COMPLETE).join(MANIFEST),
            self.path.join(MANIFEST),
        ];
        all.into_iter()
            .filter(|manifest| self.checkpoints && manifest.is_file())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder with the lock in it is not empty.
        self.lock = None;
        remove_empty(&self.created);
    }
}
