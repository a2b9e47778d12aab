//! The files of the model at a path: one file, the parts of a split one of which any is named, or those of a folder.

use std::path::{Path, PathBuf};

use tabtune::checkpoint::MANIFEST;
use tabtune::formats::part_of;
use tabtune::state::CARRIED_FILES;

use super::folder::refuse_other_than_files;
use super::hub::located;
use super::{FileSource, check_kind, file_name, files_of, has_ending, model_files_of, open_listed};
use crate::error::{Result, RunError, unreadable};

/// Ending of the name of an index of shards.
const INDEX: &str = ".safetensors.index.json";

/// Opens the files of the model at `path` and, in the folder of a checkpoint, its `checkpoint.json` of the same moment.
pub fn model_files(path: &Path) -> Result<(Vec<FileSource>, Option<FileSource>)> {
    let path = &*located(path)?;
    if path.is_dir() {
        return folder_files(path, None);
    }
    match Named::by(path) {
        None => Ok((vec![FileSource::open(path)?], None)),
        Some(Named::Parts(paths)) => Ok((
            paths
                .iter()
                .map(|path| FileSource::open(path))
                .collect::<tabtune::Result<_>>()?,
            None,
        )),
        Some(Named::Shards { folder, stem }) => {
            check_kind(path)?;
            std::fs::metadata(path).map_err(|e| unreadable(path.display(), e))?;
            folder_files(&folder, Some(&stem))
        }
    }
}

/// Opens the files of the model in the folder at `path`: with a `stem`, that of the shards with this name.
fn folder_files(path: &Path, stem: Option<&str>) -> Result<(Vec<FileSource>, Option<FileSource>)> {
    let of_model = |p: &Path| {
        has_ending(p, &["gguf", "json", "safetensors", "jinja"])
            || CARRIED_FILES.contains(&file_name(p).as_str())
    };
    refuse_other_than_files(path, of_model)?;
    let mut files = open_listed(|| {
        let mut all = model_files_of(path)?;
        // A checkpoint folder is a model folder with two additional files.
        let of_run = |p: &Path| file_name(p) == "optimizer.safetensors";
        let weights = all.iter().any(|p| has_ending(p, &["gguf", "safetensors"]));
        // If nothing else has weights, pickle files are passed on, so that they are refused by name.
        let read =
            |p: &Path| of_model(p) || !weights && has_ending(p, &["bin", "pt", "pth", "ckpt"]);
        all.retain(|p| read(p) && !of_run(p) && !stem.is_some_and(|stem| is_of_others(p, stem)));
        Ok(all)
    })?;
    if let Some(index) = stem.and_then(|stem| {
        files
            .iter_mut()
            .find(|file| file.name == format!("{stem}{INDEX}"))
    }) {
        // The crate knows an index by its usual name.
        index.name = format!("model{INDEX}");
    }
    let manifest = files
        .iter()
        .position(|file| file.name == MANIFEST)
        .map(|at| files.remove(at));
    if files.is_empty() {
        return Err(RunError::Usage(format!(
            "{}: no model in this folder: expected config.json and model.safetensors, or one .gguf file",
            path.display()
        )));
    }
    Ok((files, manifest))
}

/// A model that consists of several files, named by the path of one of them.
enum Named {
    /// The parts of a split GGUF file that are there.
    Parts(Vec<PathBuf>),
    /// A folder with shards, whose index begins with this name.
    Shards {
        /// Path of the folder.
        folder: PathBuf,
        /// Name of the shards and of their index, without their numbers and endings.
        stem: String,
    },
}

impl Named {
    /// Returns the model of which `path` is a part, an index or a shard; `None` if the file is the whole model.
    fn by(path: &Path) -> Option<Self> {
        let name = file_name(path);
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        if let Some(own) = part_of(&name, ".gguf") {
            let is_part = |path: &PathBuf| part_of(&file_name(path), ".gguf") == Some(own);
            let beside = files_of(folder)
                .unwrap_or_default()
                .into_iter()
                .filter(is_part);
            let parts: Vec<PathBuf> = beside.filter(|part| file_name(part) != name).collect();
            return Some(Self::Parts([vec![path.to_path_buf()], parts].concat()));
        }
        let stem = name
            .strip_suffix(INDEX)
            .or_else(|| part_of(&name, ".safetensors").map(|(stem, _)| stem))?;
        Some(Self::Shards {
            folder: folder.to_path_buf(),
            stem: stem.to_string(),
        })
    }
}

/// Returns true for a file of weights in the folder of a model that does not belong to the shards of `stem`.
fn is_of_others(path: &Path, stem: &str) -> bool {
    let name = file_name(path);
    let own = name.strip_suffix(INDEX) == Some(stem)
        || part_of(&name, ".safetensors").is_some_and(|(found, _)| found == stem);
    !own && [".gguf", ".safetensors", INDEX]
        .iter()
        .any(|ending| name.ends_with(ending))
}
