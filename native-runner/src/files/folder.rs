//! The files of a folder, in which a run may be saving while they are opened.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tabtune::checkpoint::MANIFEST;
use tabtune::tokenizer::MORE_TEMPLATES;

use super::{FileSource, has_ending, is_at};
use crate::error::unreadable;

/// Name of a folder inside a checkpoint folder: a complete checkpoint whose files may not all have been moved to their places yet. A process
/// that is killed while it saves leaves it behind, and the next save removes it.
pub const COMPLETE: &str = ".tabtune-complete";
/// Number of times that files are opened at most, because a run saves in their folder meanwhile.
const ATTEMPTS: u32 = 50;

/// Lists the plain files of a folder, sorted by name. Files of a complete checkpoint that have not been moved to their places yet are listed
/// where they are, in [`COMPLETE`].
///
/// # Errors
/// `source.read` if the folder cannot be listed.
pub fn files_of(folder: &Path) -> tabtune::Result<Vec<PathBuf>> {
    let complete = folder.join(COMPLETE);
    loop {
        let mut files = plain_files(folder)?;
        if complete.join(MANIFEST).is_file() {
            match plain_files(&complete) {
                // Its files were moved to their places since.
                Err(_) if !complete.exists() => continue,
                found => files.extend(found?),
            }
        }
        return Ok(files.into_values().collect());
    }
}

/// Lists the files of a model's folder: those of [`files_of`], and the chat templates that lie in a folder of their own.
///
/// # Errors
/// `source.read` if a folder cannot be listed.
pub fn model_files_of(folder: &Path) -> tabtune::Result<Vec<PathBuf>> {
    let mut files = files_of(folder)?;
    let templates = folder.join(MORE_TEMPLATES);
    if templates.is_dir() {
        files.extend(
            files_of(&templates)?
                .into_iter()
                .filter(|path| has_ending(path, &["jinja"])),
        );
    }
    Ok(files)
}

/// Refuses a folder in which something that is no file has a name that `counts`: a link whose target is gone, or a folder.
///
/// # Errors
/// `source.read` with the name.
pub fn refuse_other_than_files(
    folder: &Path,
    counts: impl Fn(&Path) -> bool,
) -> tabtune::Result<()> {
    let refused = |e: std::io::Error| unreadable(folder.display(), e);
    for entry in std::fs::read_dir(folder).map_err(refused)? {
        let path = entry.map_err(refused)?.path();
        if !counts(&path) {
            continue;
        }
        if path.is_dir() {
            return Err(unreadable(
                path.display(),
                "a folder, where a file is expected",
            ));
        }
        if let (Ok(target), false) = (path.read_link(), path.exists()) {
            return Err(unreadable(
                path.display(),
                format!(
                    "a link to {}, which does not exist: fetch the file again",
                    target.display()
                ),
            ));
        }
    }
    Ok(())
}

fn plain_files(folder: &Path) -> tabtune::Result<BTreeMap<OsString, PathBuf>> {
    let refused = |e: std::io::Error| unreadable(folder.display(), e);
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(refused)? {
        let entry = entry.map_err(refused)?;
        if entry.path().is_file() {
            files.insert(entry.file_name(), entry.path());
        }
    }
    Ok(files)
}

/// Opens the files that `list` finds, all of them as they were at one moment: if a save has moved or replaced one meanwhile, all are opened
/// again. An open file stays as it is when another takes its name.
///
/// # Errors
/// `source.read`, and errors of `list`.
pub fn open_listed(
    list: impl Fn() -> tabtune::Result<Vec<PathBuf>>,
) -> tabtune::Result<Vec<FileSource>> {
    let mut attempt = 1;
    loop {
        let paths = list()?;
        let opened = paths
            .iter()
            .map(|path| FileSource::open(path))
            .collect::<tabtune::Result<Vec<_>>>();
        let in_place = match &opened {
            Ok(files) => files
                .iter()
                .all(|source| is_at(&source.file, source.path())),
            Err(_) => paths.iter().all(|path| path.exists()),
        };
        if attempt == ATTEMPTS || in_place && list()? == paths {
            return opened;
        }
        attempt += 1;
    }
}
