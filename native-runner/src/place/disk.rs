//! Operations of output locations on the disk.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use tabtune::bundle::FileStream;
use tabtune::checkpoint::sha256;

use crate::error::{Reason, Result, RunError, unwritable};
use crate::signals::Signals;
use crate::waits::block_on;

/// Makes the error for a location whose contents must not be replaced.
pub fn occupied(place: &Path, found: String) -> RunError {
    RunError::Occupied {
        place: place.display().to_string(),
        found,
    }
}

/// Formats at most three names and the number of the remaining ones.
pub fn list(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let more = if names.len() > SHOWN {
        format!(" and {} more", names.len() - SHOWN)
    } else {
        String::new()
    };
    format!("{}{more}", names[..names.len().min(SHOWN)].join(", "))
}

/// Makes the folder at `path` and those above it. Returns the folders that were created, the deepest first.
///
/// # Errors
/// `output.occupied` for a file or a broken link, `sink.write` if the folder cannot be created.
pub fn make_folder(path: &Path) -> Result<Vec<PathBuf>> {
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => Ok(Vec::new()),
        Ok(_) => Err(occupied(path, "a file".into())),
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(unwritable(path.display(), error).into())
        }
        Err(_) => {
            if let Ok(target) = fs::read_link(path) {
                return Err(occupied(
                    path,
                    format!("a link to {}, which does not exist", target.display()),
                ));
            }
            let absent = path
                .ancestors()
                .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
            let absent: Vec<PathBuf> = absent.map(Path::to_path_buf).collect();
            fs::create_dir_all(path).map_err(|e| unwritable(path.display(), e))?;
            Ok(absent)
        }
    }
}

/// Removes folders that were created for an output, if they are empty.
pub fn remove_empty(created: &[PathBuf]) {
    for folder in created {
        // Fails for a folder with contents, which stay.
        let _ = fs::remove_dir(folder);
    }
}

/// Writes, flushes, renames and removes a small file, as writing the output does later.
///
/// # Errors
/// `sink.write`.
pub fn try_out(folder: &Path, mark: &str) -> Result<()> {
    let [first, second] = TRIED.map(|end| folder.join(format!("{}.{end}", temporary(mark))));
    let tried = File::create_new(&first).and_then(|mut file| {
        file.write_all(mark.as_bytes())
            .and_then(|()| file.sync_all())
    });
    let tried = tried
        .and_then(|()| fs::rename(&first, &second))
        .and_then(|()| fs::remove_file(&second));
    if tried.is_err() {
        let _ = fs::remove_file(&first);
        let _ = fs::remove_file(&second);
    }
    tried.map_err(|e| unwritable(folder.display(), e).into())
}

/// Creates the file `name` in a folder, and the folder that the name may begin with.
///
/// # Errors
/// The error of the file system.
pub fn create_in(folder: &Path, name: &str) -> std::io::Result<File> {
    let path = folder.join(name);
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    File::create_new(path)
}

/// Creates and removes empty files with the names of these, as writing them does later: the file system may have too few inodes for them, or
/// their paths may be too long.
///
/// # Errors
/// `sink.write`.
pub fn try_names(folder: &Path, mark: &str, stream: &FileStream) -> Result<()> {
    let part = folder.join(temporary(mark));
    let tried = fs::create_dir(&part);
    let tried = tried.and_then(|()| {
        stream
            .files()
            .iter()
            .try_for_each(|file| create_in(&part, &file.name).map(drop))
    });
    // The first failure is the one to report.
    let removed = fs::remove_dir_all(&part);
    let count = stream.files().len();
    tried.and(removed).map_err(|e| {
        unwritable(
            folder.display(),
            format!(
                "the {count} files of the output cannot be created: {}",
                Reason::from(e)
            ),
        )
        .into()
    })
}

/// Refuses an output for which the file system reports too little free space. A file system that reports nothing is assumed to have room.
///
/// # Errors
/// `sink.write`.
pub fn check_room(folder: &Path, files: usize, bytes: u64) -> Result<()> {
    // Each file may leave part of its last block unused; one more block holds their names.
    let block = fs4::allocation_granularity(folder).unwrap_or(0);
    let bytes = bytes.saturating_add(block.saturating_mul(files as u64 + 1));
    match fs4::available_space(folder) {
        Ok(free) if free < bytes => Err(unwritable(
            folder.display(),
            format!("expected room for {bytes} bytes, found {free}: free some, or write elsewhere"),
        )
        .into()),
        _ => Ok(()),
    }
}

/// Makes a mark that distinguishes the temporary names of this process from those of every other one.
pub fn mark() -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    format!("{:08x}{:016x}", std::process::id(), now.as_nanos() as u64)
}

/// Endings of the temporary files with which a folder is tried out, each with the mark as its contents.
pub const TRIED: [&str; 2] = ["a", "b"];

/// Beginning of the name of a temporary folder, before its mark.
pub const TEMPORARY: &str = ".tabtune-";

/// Returns the name of the temporary folder for a mark.
pub fn temporary(mark: &str) -> String {
    format!("{TEMPORARY}{mark}")
}

/// Writes the files of `stream` into the folder `part`. With `sealed`, the last document contains the digests of the pieces before it. A
/// signal in `signals` ends the writing between two pieces.
///
/// # Errors
/// `sink.write`, `cli.ended` after a signal, and errors of the stream.
pub fn fill(
    part: &Path,
    sealed: bool,
    stream: &mut FileStream,
    signals: Option<&Signals>,
) -> Result<()> {
    let names: Vec<String> = stream
        .files()
        .iter()
        .map(|file| file.name.clone())
        .collect();
    let mut next = block_on(stream.next_chunk())?;
    for (index, name) in names.iter().enumerate() {
        let path = part.join(name);
        let refused = |e: std::io::Error| unwritable(path.display(), e);
        let mut file = create_in(part, name).map_err(refused)?;
        while let Some(chunk) = next.take_if(|chunk| chunk.file == index) {
            if let Some(signal) = signals.and_then(Signals::taken) {
                return Err(RunError::Ended(signal));
            }
            if sealed {
                stream.hashed(&sha256(&chunk.bytes))?;
            }
            file.write_all(&chunk.bytes).map_err(refused)?;
            next = block_on(stream.next_chunk())?;
        }
        file.sync_all().map_err(refused)?;
        let (written, announced) = (
            file.metadata().map_err(refused)?.len(),
            stream.files()[index].bytes,
        );
        if written != announced {
            return Err(unwritable(
                path.display(),
                format!("{written} bytes written, {announced} announced"),
            )
            .into());
        }
    }
    flush_folder(part)
}

/// Renames a file or folder.
///
/// # Errors
/// `sink.write`.
pub fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(|e| unwritable(to.display(), e).into())
}

/// Removes a file, if it exists.
///
/// # Errors
/// `sink.write`.
pub fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(unwritable(path.display(), e).into()),
        _ => Ok(()),
    }
}

/// Returns the folder that contains `path`.
pub fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes the names in `folder` durable. Windows cannot open a folder, and does not need this flush.
///
/// # Errors
/// `sink.write`.
pub fn flush_folder(folder: &Path) -> Result<()> {
    match File::open(folder) {
        Ok(handle) => handle
            .sync_all()
            .map_err(|e| unwritable(folder.display(), e).into()),
        Err(_) => Ok(()),
    }
}
