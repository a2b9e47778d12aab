//! The only module of the runner that reads files: sources for the crate, and whole small files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use tabtune::bundle::{Bundle, OpenOptions};
use tabtune::checkpoint::{Checkpoint, MANIFEST};
use tabtune::formats::{ByteSource, truncated};
use tabtune::state::{CARRIED_FILES, PortableModelImportRequest, VerifyPolicy};

use crate::container;
use crate::error::{Result, RunError, unreadable};

/// Inside the folder of a checkpoint: one that is complete, some of whose files may not be at their places yet. A process that is ended while it
/// saves leaves it, and the next save removes it.
pub const COMPLETE: &str = ".tabtune-complete";

/// A file that the crate reads by ranges.
#[derive(Debug)]
pub struct FileSource {
    name: String,
    path: PathBuf,
    file: File,
    len: u64,
}

impl FileSource {
    /// Opens `path` under its file name.
    pub fn open(path: &Path) -> tabtune::Result<Self> {
        let file = File::open(path).map_err(|e| unreadable(path.display(), e))?;
        let meta = file.metadata().map_err(|e| unreadable(path.display(), e))?;
        if !meta.is_file() {
            return Err(unreadable(path.display(), "not a file"));
        }
        Ok(Self { name: file_name(path), path: path.to_path_buf(), file, len: meta.len() })
    }
}

impl ByteSource for FileSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> tabtune::Result<()> {
        let mut file = &self.file;
        let failed = |e: std::io::Error| unreadable(self.path.display(), e);
        file.seek(SeekFrom::Start(offset)).map_err(failed)?;
        match file.read_exact(buf) {
            // The file became shorter after it was opened.
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => {
                let len = file.metadata().map_err(failed)?.len();
                Err(truncated(&self.name, offset, buf.len() as u64, len.saturating_sub(offset)))
            }
            other => other.map_err(failed),
        }
    }
}

/// The last part of a path, as text.
pub fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// A whole file.
pub fn read_file(path: &Path) -> tabtune::Result<Vec<u8>> {
    std::fs::read(path).map_err(|e| unreadable(path.display(), e))
}

/// A whole file of JSON.
pub fn read_json(path: &Path) -> Result<serde_json::Value> {
    let bytes = read_file(path)?;
    serde_json::from_slice(&bytes).map_err(|error| {
        let reason = match bytes.trim_ascii() {
            [] => "an empty file: if it was downloaded, fetch it again".to_owned(),
            [b'<', ..] => "this is a page of HTML, not JSON: the download went wrong".to_owned(),
            text if text.starts_with(b"version https://git-lfs") => "this is a pointer; fetch the real file with git lfs pull".to_owned(),
            _ if error.is_eof() => "the file ends in the middle: if it was downloaded, fetch it again".to_owned(),
            _ => error.to_string(),
        };
        RunError::Json { name: path.display().to_string(), reason }
    })
}

/// The plain files of a folder, sorted by name; of a checkpoint whose files are not all at their places yet, those that are not, from where
/// they are.
pub fn files_of(folder: &Path) -> tabtune::Result<Vec<PathBuf>> {
    let mut files = plain_files(folder)?;
    let complete = folder.join(COMPLETE);
    if complete.join(MANIFEST).is_file() {
        files.extend(plain_files(&complete)?);
    }
    Ok(files.into_values().collect())
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

/// Whether the name of a file ends so.
pub fn has_ending(path: &Path, endings: &[&str]) -> bool {
    path.extension().and_then(|e| e.to_str()).is_some_and(|e| endings.iter().any(|want| e.eq_ignore_ascii_case(want)))
}

/// The sources of the model at `path`: one GGUF or safetensors file, or the model files of a folder.
pub fn model_sources(path: &Path) -> Result<Vec<Box<dyn ByteSource>>> {
    let mut paths = vec![path.to_path_buf()];
    if path.is_dir() {
        let all = files_of(path)?;
        // A checkpoint folder is a model folder with two more files.
        let of_run = |p: &Path| [MANIFEST, "optimizer.safetensors"].contains(&file_name(p).as_str());
        let weights = all.iter().any(|p| has_ending(p, &["gguf", "safetensors"]));
        // Pickles are refused by name where nothing else has weights.
        // The documents of a tokenizer go with the model.
        let of_tokenizer = |p: &Path| CARRIED_FILES.contains(&file_name(p).as_str());
        let of_model = |p: &Path| has_ending(p, &["gguf", "json", "safetensors", "jinja"]) || of_tokenizer(p);
        let read = |p: &Path| of_model(p) || !weights && has_ending(p, &["bin", "pt", "pth", "ckpt"]);
        paths = all.into_iter().filter(|p| read(p) && !of_run(p)).collect();
        if paths.is_empty() {
            return Err(RunError::Usage(format!(
                "{}: no model in this folder: expected config.json and model.safetensors, or one .gguf file",
                path.display()
            )));
        }
    }
    let mut sources: Vec<Box<dyn ByteSource>> = Vec::new();
    for path in paths {
        sources.push(Box::new(FileSource::open(&path)?));
    }
    Ok(sources)
}

/// Opens the model at `path`; its warnings go to stderr.
pub fn open_model(path: &Path) -> Result<Bundle> {
    open_wanted(path, Wanted::default())
}

/// What is wanted of a model that is opened.
#[derive(Default)]
pub struct Wanted<'a> {
    /// Folder of a LoRA adapter that is merged into it.
    pub adapter: Option<&'a Path>,
    /// The adapter stands beside the model instead.
    pub apart: bool,
    /// The sums of merging stay f32: who takes them rounds.
    pub exact: bool,
    /// The adapter may bring a larger vocabulary.
    pub resize_vocabulary: bool,
    /// Which of its tensors, and under which names.
    pub request: Option<PortableModelImportRequest>,
}

/// Opens the model at `path` with what is wanted of it; warnings go to stderr.
pub fn open_wanted(path: &Path, wanted: Wanted<'_>) -> Result<Bundle> {
    let adapter = wanted.adapter.map(folder_sources).transpose()?;
    let Wanted { apart, exact, resize_vocabulary, request, .. } = wanted;
    let options = OpenOptions { adapter, apart, exact, resize_vocabulary, request, ..OpenOptions::default() };
    let bundle = tabtune::model::open_model_with(model_sources(path)?, options)?;
    for warning in &bundle.warnings {
        log::warn!("{} [{}]", warning.message(), warning.code);
    }
    Ok(bundle)
}

/// The files of a base: those of the model at the one path, or all parts of a split GGUF file.
pub fn base_sources(paths: &[PathBuf]) -> Result<Vec<Box<dyn ByteSource>>> {
    if let [path] = paths {
        return model_sources(path);
    }
    let mut sources: Vec<Box<dyn ByteSource>> = Vec::new();
    for path in paths {
        sources.push(Box::new(FileSource::open(path)?));
    }
    Ok(sources)
}

/// The same for an export, which needs no base of an adapter.
pub fn open_checkpoint_alone(path: &Path) -> Result<Checkpoint> {
    let (sources, verified) = if path.is_file() { (container::sources(path)?, true) } else { (folder_sources(path)?, false) };
    Ok(Checkpoint::open_alone(sources, verified)?)
}

/// Opens the checkpoint at `path`, a folder or one file as the browser exports it, and verifies each byte. That of an adapter needs its base,
/// as much of which is compared as the policy says.
pub fn open_checkpoint(path: &Path, base: &[PathBuf], policy: VerifyPolicy) -> Result<Checkpoint> {
    let (sources, verified) = if path.is_file() { (container::sources(path)?, true) } else { (folder_sources(path)?, false) };
    Ok(match (base, verified) {
        ([], true) => Checkpoint::open_verified(sources, None),
        ([], false) => Checkpoint::open(sources, None),
        (base, verified) => Checkpoint::open_beside(sources, base_sources(base)?, policy, verified),
    }?)
}

/// Every file of the folder of a checkpoint or an adapter.
fn folder_sources(folder: &Path) -> Result<Vec<Box<dyn ByteSource>>> {
    if !folder.is_dir() {
        return Err(unreadable(folder.display(), "not a folder").into());
    }
    let mut sources: Vec<Box<dyn ByteSource>> = Vec::new();
    for path in files_of(folder)? {
        sources.push(Box::new(FileSource::open(&path)?));
    }
    Ok(sources)
}
