//! Access to files: the only module of the runner that reads them, as sources for the crate or as a whole if they are small.

mod folder;
mod hub;
mod model;
mod source;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use tabtune::bundle::{Bundle, OpenOptions};
use tabtune::checkpoint::{Checkpoint, CheckpointBase, MANIFEST, verify_as_model};
use tabtune::formats::{ByteSource, key_twice, not_json};
use tabtune::state::{CARRIED_FILES, PortableModelImportRequest, VerifyPolicy};

use self::folder::refuse_other_than_files;
pub use self::folder::{COMPLETE, files_of, model_files_of, open_listed};
pub use self::hub::located;
use self::model::model_files;
pub use self::source::{FileSource, check_kind, file_name};
use crate::container;
use crate::error::{Result, RunError, unreadable};
use crate::output::warn;

/// Returns true if both paths lead to the same file or folder.
pub fn is_same(a: &Path, b: &Path) -> bool {
    a.canonicalize()
        .ok()
        .zip(b.canonicalize().ok())
        .is_some_and(|(a, b)| a == b)
}

/// Returns true if `path` still leads to this open file.
#[cfg(unix)]
pub fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    file.metadata()
        .ok()
        .zip(std::fs::metadata(path).ok())
        .is_some_and(|(a, b)| (a.dev(), a.ino()) == (b.dev(), b.ino()))
}

/// On other systems a name is free again only after each holder of the file has closed it.
#[cfg(not(unix))]
pub fn is_at(_: &File, _: &Path) -> bool {
    true
}

/// Reads a whole file.
///
/// # Errors
/// `source.read`.
pub fn read_file(path: &Path) -> tabtune::Result<Vec<u8>> {
    std::fs::read(path).map_err(|e| unreadable(path.display(), e))
}

/// Reads and parses a whole JSON file.
///
/// # Errors
/// `source.read`; `cli.json` with the likely cause if the contents are not JSON.
pub fn read_json(path: &Path) -> Result<serde_json::Value> {
    let bytes = read_file(path)?;
    let wrong = |reason: String| RunError::Json {
        name: path.display().to_string(),
        reason,
    };
    if let Some(key) = key_twice(&bytes) {
        return Err(wrong(format!("the key {key} is there twice")));
    }
    serde_json::from_slice(&bytes).map_err(|error| {
        wrong(not_json(&bytes).map_or_else(|| error.to_string(), |flaw| flaw.to_string()))
    })
}

/// Checks that a file name has one of the endings, in upper or lower case.
pub fn has_ending(path: &Path, endings: &[&str]) -> bool {
    path.extension()
        .and_then(|e| e.to_str())
        .is_some_and(|e| endings.iter().any(|want| e.eq_ignore_ascii_case(want)))
}

/// Opens the sources of the model at `path`: one GGUF or safetensors file, the model files of a folder, or the parts of a split model, of which
/// any part, shard or index can be named.
///
/// # Errors
/// `cli.usage` for a folder without a model; `source.read`.
pub fn model_sources(path: &Path) -> Result<Vec<Rc<dyn ByteSource>>> {
    Ok(boxed(model_files(path)?.0))
}

/// Opens the sources of the model at `path`; in the folder of a checkpoint they are compared with its `checkpoint.json` if all is to be `read`.
///
/// # Errors
/// As for [`model_sources`]; the inner error is that of a file with other bytes than were saved.
pub fn model_of(path: &Path, read: bool) -> Result<tabtune::Result<Vec<Rc<dyn ByteSource>>>> {
    let (files, manifest) = model_files(path)?;
    let files = boxed(files);
    let verified = manifest
        .filter(|_| read)
        .map_or(Ok(()), |manifest| verify_as_model(&manifest, &files));
    Ok(verified.map(|()| files))
}

/// Makes sources of files.
pub fn boxed(files: Vec<FileSource>) -> Vec<Rc<dyn ByteSource>> {
    files
        .into_iter()
        .map(|file| Rc::new(file) as Rc<dyn ByteSource>)
        .collect()
}

/// Opens the model at `path` for its documents, its shape and the headers of its files. Its warnings go to stderr.
///
/// # Errors
/// Errors of [`open_wanted`].
pub fn open_model(path: &Path) -> Result<Bundle> {
    open_wanted(
        path,
        Wanted {
            unread: true,
            ..Wanted::default()
        },
    )
}

/// Returns the chat template that an option names: the word for ChatML, or the text of a file.
///
/// # Errors
/// `source.read` for a file that cannot be read or is no text.
pub fn chat_template(option: Option<&Path>) -> Result<Option<String>> {
    let Some(path) = option.filter(|path| *path != Path::new("chatml")) else {
        return Ok(option.map(|path| path.display().to_string()));
    };
    let text = String::from_utf8(read_file(path)?);
    Ok(Some(text.map_err(|error| {
        let reason = std::io::Error::new(std::io::ErrorKind::InvalidData, error);
        unreadable(path.display(), reason)
    })?))
}

/// Options for opening a model.
#[derive(Default)]
pub struct Wanted<'a> {
    /// Folder of a LoRA adapter that is merged into the model.
    pub adapter: Option<&'a Path>,
    /// True if the adapter stays separate from the model instead of being merged.
    pub apart: bool,
    /// True if merged weights stay f32, and the caller rounds them.
    pub exact: bool,
    /// True if the adapter may bring a larger vocabulary.
    pub resize_vocabulary: bool,
    /// True if no weights are read, so that those of a checkpoint are not verified.
    pub unread: bool,
    /// Chat template to use instead of the model's.
    pub chat_template: Option<String>,
    /// Selection and renaming of the model's tensors.
    pub request: Option<PortableModelImportRequest>,
}

/// Opens the model at `path` with these options. Its warnings go to stderr.
///
/// # Errors
/// `source.read`, `cli.usage` for a folder without a model, `checkpoint.*` for a checkpoint with other bytes than were saved, and the refusals
/// of the crate for files that are not sound.
pub fn open_wanted(path: &Path, wanted: Wanted<'_>) -> Result<Bundle> {
    let (files, adapter) = (
        model_of(path, !wanted.unread)??,
        wanted.adapter.map(folder_sources).transpose()?,
    );
    if !wanted.unread {
        let of_adapter = adapter.as_deref().unwrap_or_default();
        if let Some(manifest) = of_adapter.iter().find(|file| file.name() == MANIFEST) {
            verify_as_model(manifest.as_ref(), of_adapter)?;
        }
    }
    let Wanted {
        apart,
        exact,
        resize_vocabulary,
        request,
        chat_template,
        ..
    } = wanted;
    let options = OpenOptions {
        adapter,
        apart,
        exact,
        resize_vocabulary,
        request,
        chat_template,
        ..OpenOptions::default()
    };
    let bundle = tabtune::model::open_model_with(files, options)?;
    for warning in &bundle.warnings {
        warn(&warning.message(), warning.code);
    }
    Ok(bundle)
}

/// Opens the files of a base: the model at the only path, or all parts of a split GGUF file.
///
/// # Errors
/// Errors of [`model_sources`].
pub fn base_sources(paths: &[PathBuf]) -> Result<Vec<Rc<dyn ByteSource>>> {
    if let [path] = paths {
        return model_sources(path);
    }
    let mut sources: Vec<Rc<dyn ByteSource>> = Vec::new();
    for path in paths {
        sources.push(Rc::new(FileSource::open(path)?));
    }
    Ok(sources)
}

/// Opens the checkpoint at `path` for an export, which does not need the base of an adapter. Each byte is verified.
///
/// # Errors
/// `source.read`, `checkpoint.*`.
pub fn open_checkpoint_alone(path: &Path) -> Result<Checkpoint> {
    open_with(path, CheckpointBase::Unneeded)
}

/// Opens the checkpoint at `path`, a folder or one file as the browser exports it, and verifies each byte. The checkpoint of an adapter needs
/// its base, which is compared to the extent that `policy` says.
///
/// # Errors
/// `source.read`, `checkpoint.*`.
pub fn open_checkpoint(path: &Path, base: &[PathBuf], policy: VerifyPolicy) -> Result<Checkpoint> {
    let base = match base {
        [] => CheckpointBase::Absent,
        base => CheckpointBase::Files(base_sources(base)?, policy),
    };
    open_with(path, base)
}

fn open_with(path: &Path, base: CheckpointBase) -> Result<Checkpoint> {
    let (sources, verified) = if path.is_file() {
        (container::sources(path)?, true)
    } else {
        (folder_sources(path)?, false)
    };
    Ok(Checkpoint::open_with(sources, base, verified)?)
}

/// Opens the files of the state at `path`, in any form: those of a folder, those in a `.tabtune` file, or one file, or the parts of a split one.
///
/// # Errors
/// `source.read`, and `checkpoint.container.*` for a damaged `.tabtune` file.
pub fn state_sources(path: &Path) -> Result<Vec<Rc<dyn ByteSource>>> {
    if path.is_dir() {
        let is_of_state = |p: &Path| {
            has_ending(p, &["gguf", "json", "safetensors", "jinja"])
                || CARRIED_FILES.contains(&file_name(p).as_str())
        };
        refuse_other_than_files(path, is_of_state)?;
        let list = || {
            let mut files = model_files_of(path)?;
            files.retain(|file| is_of_state(file));
            Ok(files)
        };
        return Ok(boxed(open_listed(list)?));
    }
    if has_ending(path, &["tabtune"]) {
        return container::sources(path);
    }
    model_sources(path)
}

/// Opens the files of the state at `path` from which a run continues: those of [`state_sources`], and the receipt next to a single file.
///
/// # Errors
/// As for [`state_sources`].
pub fn run_sources(path: &Path) -> Result<Vec<Rc<dyn ByteSource>>> {
    let mut files = state_sources(path)?;
    if let Some(receipt) = receipt_of(path).filter(|_| path.is_file()) {
        files.push(Rc::new(FileSource::open(&receipt)?));
    }
    Ok(files)
}

/// Finds the receipt of a single file, which is next to it.
pub fn receipt_of(file: &Path) -> Option<PathBuf> {
    let mut name = file.file_name()?.to_os_string();
    name.push(".receipt.json");
    Some(file.with_file_name(name)).filter(|receipt| receipt.is_file())
}

/// Opens every file in the folder of a checkpoint or an adapter.
fn folder_sources(folder: &Path) -> Result<Vec<Rc<dyn ByteSource>>> {
    if !folder.is_dir() {
        return Err(unreadable(folder.display(), "not a folder").into());
    }
    refuse_other_than_files(folder, |p| has_ending(p, &["json", "safetensors"]))?;
    Ok(boxed(open_listed(|| model_files_of(folder))?))
}
