//! The contents of a folder: which files belong to its checkpoint, and which are somebody else's.

use std::fs;
use std::path::{Path, PathBuf};

use tabtune::bundle::FileStream;
use tabtune::checkpoint::{MANIFEST, read_manifest};

use super::Folder;
use super::disk::{list, occupied};
use super::lock::LOCK;
use crate::error::{Result, unwritable};
use crate::files::{COMPLETE, FileSource, files_of};

/// Name of the folder that a new file system has at its root.
const OF_THE_SYSTEM: &str = "lost+found";

impl Folder {
    /// Refuses the folder if a save would replace files that the run itself reads from the path of this option.
    ///
    /// # Errors
    /// `output.occupied`; `source.read` for a folder that cannot be listed.
    pub fn check_input(&self, option: &str, input: &Path) -> Result<()> {
        let files = if input.is_dir() {
            files_of(input)?
        } else {
            vec![input.to_path_buf()]
        };
        let real = |path: &PathBuf| fs::canonicalize(path).ok();
        let own = self
            .own
            .iter()
            .flat_map(|name| [self.path.join(name), self.path.join(COMPLETE).join(name)]);
        let own: Vec<PathBuf> = own.filter_map(|path| real(&path)).collect();
        if files
            .iter()
            .filter_map(real)
            .any(|file| own.contains(&file))
        {
            return Err(self.occupied(format!(
                "files that {option} reads, and that a save would replace"
            )));
        }
        Ok(())
    }

    /// Refuses names that exist in the folder and belong to somebody else. A folder never belongs to a checkpoint.
    pub(super) fn check_names(&self, stream: &FileStream) -> Result<()> {
        let foreign = |name: &str| match self.path.join(name).symlink_metadata() {
            Ok(meta) => {
                meta.is_dir() || name != MANIFEST && !self.own.iter().any(|own| own == name)
            }
            Err(_) => false,
        };
        let names = stream.files().iter().map(|file| file.name.clone());
        self.refuse_foreign(names.filter(|name| foreign(name)).collect())
    }

    /// Makes the error for names that belong to somebody else, if there are any.
    fn refuse_foreign(&self, found: Vec<String>) -> Result<()> {
        if found.is_empty() {
            return Ok(());
        }
        Err(occupied(
            &self.path,
            format!(
                "{} of somebody else, whose place the output would take",
                list(&found)
            ),
        ))
    }

    /// Refuses a folder whose contents are not a checkpoint's. The names of the files that are become the folder's own.
    pub(super) fn check_contents(&mut self) -> Result<()> {
        let mut is_checkpoint = false;
        for manifest in [
            self.path.join(COMPLETE).join(MANIFEST),
            self.path.join(MANIFEST),
        ] {
            if self.checkpoints && manifest.symlink_metadata().is_ok() {
                let told = |_| {
                    occupied(
                        &self.path,
                        format!("a {MANIFEST} that no checkpoint of tabtune has"),
                    )
                };
                self.own.extend(named_by(&manifest).map_err(told)?);
                is_checkpoint = true;
            }
        }
        if is_checkpoint {
            let is_folder = |name: &&String| {
                self.path
                    .join(name)
                    .symlink_metadata()
                    .is_ok_and(|meta| meta.is_dir())
            };
            self.refuse_foreign(self.own.iter().filter(is_folder).cloned().collect())?;
            return self.check_complete();
        }
        let mut found = names_in(&self.path)?;
        found.retain(|name| name != LOCK && name != OF_THE_SYSTEM);
        if found.is_empty() {
            Ok(())
        } else {
            Err(occupied(&self.path, list(&found)))
        }
    }

    /// Refuses something under the name of the folder of complete files that is not that of a checkpoint.
    fn check_complete(&self) -> Result<()> {
        let complete = self.path.join(COMPLETE);
        let Ok(meta) = complete.symlink_metadata() else {
            return Ok(());
        };
        let manifest = complete.join(MANIFEST);
        let named = if manifest.is_file() {
            named_by(&manifest)?
        } else {
            Vec::new()
        };
        let foreign = |name: &String| {
            name != MANIFEST && !named.contains(name) || complete.join(name).is_dir()
        };
        if !meta.is_dir() || names_in(&complete)?.iter().any(foreign) {
            return self.refuse_foreign(vec![COMPLETE.into()]);
        }
        Ok(())
    }
}

/// Lists the files that a manifest names. Together with the manifest they are the checkpoint.
pub(super) fn named_by(manifest: &Path) -> Result<Vec<String>> {
    let plain = |name: &String| {
        Path::new(name)
            .file_name()
            .is_some_and(|last| last == name.as_str())
    };
    let names: Vec<String> = read_manifest(&FileSource::open(manifest)?)?
        .files
        .into_iter()
        .map(|file| file.name)
        .collect();
    match names.iter().find(|name| !plain(name)) {
        Some(name) => Err(unwritable(
            manifest.display(),
            format!("it names {name:?}, which is no file of its folder"),
        )
        .into()),
        None => Ok(names),
    }
}

/// Lists the names in a folder, sorted.
fn names_in(folder: &Path) -> Result<Vec<String>> {
    let entries =
        fs::read_dir(folder).and_then(|entries| entries.collect::<std::io::Result<Vec<_>>>());
    let entries = entries.map_err(|e| unwritable(folder.display(), e))?;
    let mut names: Vec<String> = entries
        .iter()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}
