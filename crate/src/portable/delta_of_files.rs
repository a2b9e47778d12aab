//! Deltas between models in files, whatever their form: safetensors, a Hugging Face folder, a JSON state dict, a checkpoint, GGUF. Tensors are
//! compared as they are stored, under the names of the files.

use std::rc::Rc;

use serde::Serialize;

use super::bundle::{OpenedBundle, PortableModelBundle};
use super::delta::ModelAdapterDelta;
use super::imports::{SharedFiles, open_state};
use super::json::open_json;
use super::safetensors::open_safetensors;
use crate::bundle::{
    FileStream, FilesKind, STATE_JSON, SplicedFile, gguf_files, read_state_json, weight_files,
};
use crate::error::{Error, Result};
use crate::export::JsonEncoding;
use crate::formats::{ByteSource, base_name};
use crate::state::{
    Bytes, MANIFEST_FILE, NamePolicy, OPTIMIZER_FILE, PortableModelImportRequest,
    PortableModelStateDict, RECEIPT, SourceWord,
};

/// Summary of a delta.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeltaReport {
    /// Name given by its maker.
    pub name: String,
    /// Digest of the weights that it leads from, in hex.
    pub base_weights: String,
    /// Digest of the weights that it leads to, in hex.
    pub target_weights: String,
    /// Names of the tensors that differ, ascending.
    pub changed: Vec<String>,
}

/// Files of a delta, or of a model that one was added to or subtracted from; the last is their receipt.
#[derive(Debug)]
pub struct DeltaFiles {
    /// Summary of the delta.
    pub report: DeltaReport,
    /// The files.
    pub stream: FileStream,
}

/// Direction in which a delta is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeltaUse {
    /// From its base to its target.
    Apply,
    /// From its target to its base.
    Remove,
}

impl DeltaReport {
    fn of(delta: &ModelAdapterDelta) -> Self {
        Self {
            name: delta.adapter_id.clone(),
            base_weights: delta.base_weights_digest.to_string(),
            target_weights: delta.target_weights_digest.to_string(),
            changed: delta.changed().map(str::to_string).collect(),
        }
    }
}

/// Writes the delta `name` from the model `base` to the model `target`, whose forms may differ, to `file`, which ends in `.safetensors`; by
/// default to `delta.safetensors`.
///
/// # Errors
/// `delta.keys.differ` and `delta.tensor.mismatch` for models that do not have the same tensors; `config.invalid` for a `file` with another
/// ending; errors of opening and reading.
pub async fn derive_delta(
    base: &SharedFiles,
    target: &SharedFiles,
    name: &str,
    file: Option<&str>,
) -> Result<DeltaFiles> {
    check_ending(file, ".safetensors")?;
    let (base, target) = (opened(base)?, opened(target)?);
    let (base, target) = (imported(&base).await?, imported(&target).await?);
    let delta = base.derive_adapter_delta(&target, name).await?;
    Ok(DeltaFiles {
        report: DeltaReport::of(&delta),
        stream: match file {
            Some(file) => delta.export_as(file)?,
            None => delta.export()?,
        },
    })
}

/// Writes the weights of `model` with the delta added or subtracted: copies of its weight files, in which only the changed tensors have other
/// bytes. A JSON state dict is written again, in base64 if
/// values are not finite. A single file is called `file`, if one is given.
///
/// # Errors
/// `delta.base.mismatch`, `delta.target.mismatch`, `delta.keys.differ` and `delta.tensor.mismatch` for a delta that does not belong to the
/// model; `config.invalid` for a `file` with another ending than the model's, or for a model of several files; errors of opening and reading.
pub async fn use_delta(
    model: &SharedFiles,
    delta: Rc<dyn ByteSource>,
    way: DeltaUse,
    file: Option<&str>,
) -> Result<DeltaFiles> {
    let delta = ModelAdapterDelta::open(delta)?;
    let opened = opened(model)?;
    let of_state = imported(&opened).await?;
    let state_dict = match way {
        DeltaUse::Apply => of_state.apply_adapter_delta(&delta, false).await?,
        DeltaUse::Remove => of_state.remove_adapter_delta(&delta, false).await?,
    };
    let OpenedBundle { state, metadata } = opened;
    let bundle = PortableModelBundle {
        state_dict,
        metadata,
    };
    let mut stream = if state.source_format == SourceWord::TorchStateDictJson {
        check_ending(file, STATE_JSON)?;
        let mut documents = model.iter();
        let document = documents.find(|source| base_name(source.name()) == state.artifact);
        let numbers = document
            .map(|document| read_state_json(document))
            .transpose()?;
        let numbers = numbers.is_some_and(|document| document.numbers);
        let file = file.unwrap_or(&state.artifact);
        json(&bundle, file, state.manifest.is_some(), numbers).await?
    } else {
        let weights = bundle.state_dict.weights_digest().await?;
        FileStream::spliced(copies(&bundle.state_dict, model, file)?, weights)?
    };
    stream.push_receipt(RECEIPT, bundle.state_dict.draft())?;
    Ok(DeltaFiles {
        report: DeltaReport::of(&delta),
        stream,
    })
}

/// Opens the tensors of a model as they are stored: of a Hugging Face folder also a second copy of a tied table, and whatever its model.
fn opened(files: &SharedFiles) -> Result<OpenedBundle> {
    if FilesKind::of(files) != FilesKind::Folder {
        return open_state(files, NamePolicy::Source);
    }
    let ending = |end: &str| {
        files
            .iter()
            .find(|file| base_name(file.name()).ends_with(end))
    };
    if let (None, Some(document)) = (ending(".safetensors"), ending(STATE_JSON)) {
        return Ok(OpenedBundle::of_state(open_json(document)?));
    }
    let mut of_state = weight_files(files)?;
    let is_kept = |name: &str| matches!(name, MANIFEST_FILE | OPTIMIZER_FILE);
    let kept = files.iter().filter(|file| is_kept(base_name(file.name())));
    of_state.extend(kept.cloned());
    Ok(OpenedBundle::of_state(open_safetensors(of_state)?))
}

/// Imports all of a model, whose values are compared with the digests that it states.
async fn imported(opened: &OpenedBundle) -> Result<PortableModelStateDict> {
    let request = PortableModelImportRequest::default();
    Ok(opened.state.import(&request).await?.state_dict)
}

/// The copies of the files that hold the weights of `state`, ascending by name.
fn copies(
    state: &PortableModelStateDict,
    model: &SharedFiles,
    file: Option<&str>,
) -> Result<Vec<SplicedFile>> {
    let copy = |source: &Rc<dyn ByteSource>| SplicedFile {
        name: base_name(source.name()).to_string(),
        source: Rc::clone(source),
        tensors: Vec::new(),
    };
    // A part of a GGUF file may have no tensors.
    let parts = gguf_files(model).into_iter().map(|at| copy(&model[at]));
    let mut copies: Vec<SplicedFile> = parts.collect();
    let weights = state.tensors().values().filter(|one| !one.is_state());
    for tensor in weights.filter(|tensor| !tensor.is_empty()) {
        let (stored, is_moved) = match tensor.bytes() {
            Bytes::Moved(moved) => (moved.base.stored(), true),
            _ => (tensor.stored(), false),
        };
        let Some(stored) = stored else {
            continue;
        };
        let mut sources = copies.iter().map(|copy| &copy.source);
        let home = sources.position(|source| Rc::ptr_eq(source, &stored.source));
        let home = home.unwrap_or_else(|| {
            copies.push(copy(&stored.source));
            copies.len() - 1
        });
        if is_moved {
            let moved = (stored.begin, tensor.clone());
            copies[home].tensors.push(moved);
        }
    }
    copies.sort_by(|a, b| a.name.cmp(&b.name));
    match (copies.as_mut_slice(), file) {
        (_, None) => {}
        ([only], Some(file)) => {
            let ending = only.name.rfind('.').map_or("", |at| &only.name[at..]);
            check_ending(Some(file), ending)?;
            only.name = file.to_string();
        }
        (several, Some(file)) => {
            let rule = format!("a folder, for {} files", several.len());
            return Err(Error::invalid("to", rule, file));
        }
    }
    Ok(copies)
}

/// Writes a JSON state dict, with a manifest if `has_manifest`.
async fn json(
    bundle: &PortableModelBundle,
    file: &str,
    has_manifest: bool,
    numbers: bool,
) -> Result<FileStream> {
    let manifest = has_manifest.then(|| bundle.manifest());
    let encoded = async |encoding| {
        let state = &bundle.state_dict;
        state
            .export_json(file, manifest.as_ref(), encoding, true)
            .await
    };
    if !numbers {
        return encoded(JsonEncoding::Base64).await;
    }
    match encoded(JsonEncoding::Numbers).await {
        Err(error) if error.code() == "export.json.non-finite" => {
            encoded(JsonEncoding::Base64).await
        }
        other => other,
    }
}

/// Refuses a name of a file that does not have this ending.
fn check_ending(file: Option<&str>, ending: &str) -> Result<()> {
    match file.filter(|file| !file.to_ascii_lowercase().ends_with(ending)) {
        Some(file) => {
            let rule = format!("a name that ends in {ending}");
            Err(Error::invalid("to", rule, file))
        }
        None => Ok(()),
    }
}
