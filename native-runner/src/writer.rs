//! Writes a folder of files, or one file, so that it is either complete or absent.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use tabtune::bundle::FileStream;
use tabtune::checkpoint::sha256;

use crate::error::{Result, unwritable};
use crate::files::files_of;
use crate::wait::wait;

/// `folder` with another ending: `run` → `run.partial`.
pub fn beside(folder: &Path, ending: &str) -> PathBuf {
    let mut name = folder.file_name().unwrap_or_default().to_os_string();
    name.push(".");
    name.push(ending);
    folder.with_file_name(name)
}

/// Refuses a place that cannot become `folder`, before the work whose results go there.
/// A folder that is not empty is replaced only if it contains a file named `marker`.
pub fn check_place(folder: &Path, marker: Option<&str>) -> Result<()> {
    let refuse = |reason: &str| Err(unwritable(folder.display(), reason).into());
    if folder.file_name().is_none() {
        return refuse("expected the name of a folder");
    }
    match fs::metadata(folder) {
        Err(_) => {}
        Ok(meta) if !meta.is_dir() => return refuse("exists and is not a folder"),
        Ok(_) => {
            let empty = fs::read_dir(folder).map_err(|e| unwritable(folder.display(), e))?.next().is_none();
            let ours = marker.is_some_and(|name| folder.join(name).is_file());
            if !empty && !ours {
                return refuse(if marker.is_some() { "exists and is not a checkpoint" } else { "exists and is not empty" });
            }
        }
    }
    fs::create_dir_all(parent(folder)).map_err(|e| unwritable(parent(folder).display(), e).into())
}

/// Writes `stream` as `folder`: next to it, flushed, then renamed. Returns the paths of the files.
pub fn write_folder(folder: &Path, marker: Option<&str>, stream: &mut FileStream) -> Result<Vec<PathBuf>> {
    check_place(folder, marker)?;
    let partial = beside(folder, "partial");
    remove(&partial)?;
    fs::create_dir(&partial).map_err(|e| unwritable(partial.display(), e))?;
    if let Err(error) = fill(&partial, marker.is_some(), stream) {
        // The first failure is the one to report; the next attempt overwrites what is left.
        let _ = fs::remove_dir_all(&partial);
        return Err(error);
    }
    flush_folder(&partial)?;
    replace(folder, &partial)?;
    Ok(files_of(folder)?)
}

/// Refuses a place that cannot become the file `path`, before the work whose result goes there.
pub fn check_file(path: &Path) -> Result<()> {
    if path.file_name().is_none() {
        return Err(unwritable(path.display(), "expected the name of a file").into());
    }
    if path.exists() {
        return Err(unwritable(path.display(), "exists").into());
    }
    fs::create_dir_all(parent(path)).map_err(|e| unwritable(parent(path).display(), e).into())
}

/// Writes the one file of `stream` as `path`: next to it, flushed, then renamed. A receipt goes beside it, as `<path>.receipt.json`. Returns
/// the paths of the files.
pub fn write_file(path: &Path, stream: &mut FileStream) -> Result<Vec<PathBuf>> {
    let places = [path.to_path_buf(), beside(path, "receipt.json")];
    check_file(path)?;
    let partial = beside(path, "partial");
    remove(&partial)?;
    fs::create_dir(&partial).map_err(|e| unwritable(partial.display(), e))?;
    let names: Vec<PathBuf> = stream.files().iter().map(|file| partial.join(&file.name)).collect();
    let renamed = |(written, place): (&PathBuf, &PathBuf)| -> Result<()> {
        fs::rename(written, place).map_err(|e| unwritable(place.display(), e).into())
    };
    let written = fill(&partial, false, stream).and_then(|()| names.iter().zip(&places).try_for_each(renamed));
    // The first failure is the one to report; the next attempt overwrites what is left.
    let removed = remove(&partial);
    written.and(removed)?;
    flush_folder(parent(path))?;
    Ok(places.into_iter().take(names.len()).collect())
}

/// `sealed`: the last document contains the digests of the pieces before it.
fn fill(folder: &Path, sealed: bool, stream: &mut FileStream) -> Result<()> {
    let names: Vec<String> = stream.files().iter().map(|file| file.name.clone()).collect();
    let mut next = wait(stream.next_chunk())?;
    for (index, name) in names.iter().enumerate() {
        let path = folder.join(name);
        let refused = |e: std::io::Error| unwritable(path.display(), e);
        let mut file = File::create_new(&path).map_err(refused)?;
        while let Some(chunk) = next.take_if(|chunk| chunk.file == index) {
            if sealed {
                stream.hashed(&sha256(&chunk.bytes))?;
            }
            file.write_all(&chunk.bytes).map_err(refused)?;
            next = wait(stream.next_chunk())?;
        }
        file.sync_all().map_err(refused)?;
        let (written, announced) = (file.metadata().map_err(refused)?.len(), stream.files()[index].bytes);
        if written != announced {
            return Err(unwritable(path.display(), format!("{written} bytes written, {announced} announced")).into());
        }
    }
    Ok(())
}

/// Puts `partial` in the place of `folder`. Between the two renames the old folder is complete under `.previous`.
fn replace(folder: &Path, partial: &Path) -> Result<()> {
    let previous = beside(folder, "previous");
    let refused = |e: std::io::Error| unwritable(folder.display(), e);
    if folder.exists() {
        remove(&previous)?;
        fs::rename(folder, &previous).map_err(refused)?;
    }
    fs::rename(partial, folder).map_err(refused)?;
    flush_folder(parent(folder))?;
    remove(&previous)
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(unwritable(folder.display(), e).into()),
        _ => Ok(()),
    }
}

fn parent(folder: &Path) -> &Path {
    match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes names in `folder` durable. Windows cannot open a folder, and does not need this flush.
fn flush_folder(folder: &Path) -> Result<()> {
    match File::open(folder) {
        Ok(handle) => handle.sync_all().map_err(|e| unwritable(folder.display(), e).into()),
        Err(_) => Ok(()),
    }
}
