//! Opens the containers that hold more than a state: checkpoint, Hugging Face folder, GGUF file. They are read by the readers of models.

use std::rc::Rc;

use super::bundle::{Bound, OpenedBundle};
use super::json::open_json;
use super::model_metadata::ModelMetadata;
use super::safetensors::{open_safetensors, opened_file};
use crate::bundle::{
    Bundle, FilesKind, OpenOptions, PortableTokenizerBinding, STATE_JSON, gguf_files, no_state,
    open_bundle_with, summed_gguf,
};
use crate::checkpoint::{Checkpoint, CheckpointBase, Manifest};
use crate::error::{Error, Refusal, Result, Warning, word};
use crate::export::training_record;
use crate::families::{HEAD, from_gguf, is_of_config};
use crate::formats::{ByteSource, FileTensor, GgufValue, SafetensorsFile, base_name};
use crate::state::{
    BaseFile, Bytes, Identity, Input, MANIFEST_FILE, NamePolicy, OPTIMIZER_FILE, OpenedFile,
    OpenedState, Reordering, SourceWord, StateManifest, Tensor, byte_len,
};

/// Files of one artifact, which its tensors share ([example](crate::portable)).
pub type SharedFiles = Vec<Rc<dyn ByteSource>>;

/// Opens the state in `files`, in whichever form it is kept: a checkpoint folder, a Hugging Face folder, a GGUF file or its parts, safetensors
/// files with or without their manifest, a JSON state dict. Only headers are read, except of JSON and of a checkpoint, whose bytes are verified.
/// `names` counts for GGUF files.
///
/// # Errors
/// The errors of the form's reader; `bundle.adapter` for an adapter alone, `format.unsupported` for files of no such form.
pub fn open_state(files: &SharedFiles, names: NamePolicy) -> Result<OpenedBundle> {
    open_in_form(files, names, false)
}

/// Opens the state in `files` like [`open_state`] without reading values: a second head of a tied model is assumed to equal the embedding, and
/// of a checkpoint only lengths are checked. A JSON state dict is read all the same.
pub(super) fn open_headers(files: &SharedFiles, names: NamePolicy) -> Result<OpenedBundle> {
    open_in_form(files, names, true)
}

fn open_in_form(files: &SharedFiles, names: NamePolicy, unread: bool) -> Result<OpenedBundle> {
    match FilesKind::of(files) {
        FilesKind::Checkpoint => checkpoint(files, unread),
        FilesKind::Folder => {
            hf_folder(files, unread).or_else(|refused| bare_tensors(files, refused))
        }
        FilesKind::Gguf => gguf(files, names, unread),
        FilesKind::StateJson(document) => Ok(OpenedBundle::of_state(open_json(&files[document])?)),
        FilesKind::Safetensors | FilesKind::Optimizer => {
            Ok(OpenedBundle::of_state(open_safetensors(weights_of(files))?))
        }
        FilesKind::Adapter | FilesKind::Unknown => Err(no_state(files)),
    }
}

/// True for a state without a model's configuration: a JSON state dict, or safetensors files.
pub fn is_bare_state(files: &SharedFiles) -> bool {
    matches!(
        FilesKind::of(files),
        FilesKind::StateJson(_) | FilesKind::Safetensors
    )
}

/// The tensors of a folder whose model was `refused`, as a state without a model; the reason becomes a warning.
fn bare_tensors(files: &SharedFiles, refused: Error) -> Result<OpenedBundle> {
    let Ok(mut state) = open_safetensors(weights_of(files)) else {
        return Err(refused);
    };
    let reason = refused.to_string();
    let warning = Warning::new(word!("state.model-refused"), &reason);
    state.warnings.push(warning);
    Ok(OpenedBundle::of_state(state))
}

/// The safetensors files, and the manifest of shards.
fn weights_of(files: &SharedFiles) -> SharedFiles {
    let is_of_state = |file: &&Rc<dyn ByteSource>| {
        let name = base_name(file.name());
        name == MANIFEST_FILE || name.to_ascii_lowercase().ends_with(".safetensors")
    };
    files.iter().filter(is_of_state).cloned().collect()
}

/// Reads a checkpoint folder and verifies its bytes.
///
/// # Errors
/// The errors of [`Checkpoint::open`]; `checkpoint.corrupt` for a tokenizer other than the one that the manifest describes.
pub fn open_checkpoint(files: &SharedFiles) -> Result<OpenedBundle> {
    checkpoint(files, false)
}

fn checkpoint(files: &SharedFiles, unread: bool) -> Result<OpenedBundle> {
    let checkpoint = Checkpoint::open_with(files.clone(), CheckpointBase::Unneeded, unread)?;
    let Manifest {
        train,
        progress,
        data_digest,
        identity,
        tensors: records,
        groups,
        tokenizer: said,
        base,
        ..
    } = checkpoint.manifest().clone();
    let bound = PortableTokenizerBinding::from_hf_folder(files)?;
    if said.is_some() && said != bound.as_ref().map(|(binding, _)| binding.account()) {
        return Err(Error::CheckpointCorrupt {
            what: "tokenizer".into(),
            reason: "it does not describe the documents next to it".into(),
        });
    }
    let mut state = OpenedState::new(identity.clone(), SourceWord::Checkpoint, "checkpoint.json");
    let mut sources: Vec<&Rc<dyn ByteSource>> = Vec::new();
    for tensor in checkpoint.tensors() {
        let home = tensor.span().map(|span| &span.source);
        sources.extend(home.filter(|home| sources.iter().all(|other| other.name() != home.name())));
        // Its record, which was compared with the file, may have a path of its own.
        let record = records[&tensor.name].clone();
        let tensor = tensor.clone().described(record.manifest(&tensor.name));
        state.tensors.insert(tensor.name.clone(), Box::new(tensor));
    }
    for source in sources {
        let file = SafetensorsFile::open(source)?;
        state.files.push(opened_file(source, &file));
    }
    state.inputs = files.iter().map(Input::of).collect();
    state.groups.clone_from(&groups);
    state.manifest = Some(StateManifest {
        base: base.clone(),
        tokenizer: said,
        ..StateManifest::new(identity, records, groups)
    });
    let mut opened = OpenedBundle::of_model(state, checkpoint.bundle(), bound);
    opened.metadata.base = base;
    opened.metadata.training = Some(training_record(&train, progress, &data_digest, "", None)?);
    Ok(opened)
}

/// Reads a Hugging Face folder: its configuration, its weights with their manifest if they have one, its tokenizer. A head that is a copy of
/// the input embedding of a tied model is left out.
///
/// # Errors
/// The errors of [`open_bundle_with`] and [`open_safetensors`].
pub fn open_hf_folder(files: &SharedFiles) -> Result<OpenedBundle> {
    hf_folder(files, false)
}

fn hf_folder(files: &SharedFiles, unread: bool) -> Result<OpenedBundle> {
    // The state of an optimizer is part of the state, and not of the model.
    let of_model = |file: &&Rc<dyn ByteSource>| base_name(file.name()) != OPTIMIZER_FILE;
    let own = files.iter().filter(of_model).cloned().collect();
    let bundle = open_bundle_with(own, options(unread))?;
    let bound = bound_or_refused(PortableTokenizerBinding::from_hf_folder(files))?;
    let weights = bundle.weight_files();
    let is_state =
        |name: &str| weights.contains(&name) || matches!(name, MANIFEST_FILE | OPTIMIZER_FILE);
    let of_state = files.iter().filter(|file| is_state(base_name(file.name())));
    // The tensors of a JSON state dict are in memory, so no file is their home.
    let document = files.iter().find(|file| {
        weights.is_empty()
            && base_name(file.name())
                .to_ascii_lowercase()
                .ends_with(STATE_JSON)
    });
    let mut state = match document {
        Some(document) => open_json(document)?,
        None => open_safetensors(of_state.cloned().collect())?,
    };
    if bundle.shape(HEAD).is_none() {
        state.tensors.remove(HEAD);
    }
    state.source_format = SourceWord::HfFolder;
    state.inputs = files.iter().map(Input::of).collect();
    if state.manifest.is_none() {
        state.identity = Identity::of_family(&bundle.config.model_type);
    }
    Ok(OpenedBundle::of_model(state, &bundle, bound))
}

/// Reads a GGUF file, or all parts of one. Every tensor is listed under its own name, or, with [`NamePolicy::Hf`], under Hugging Face's with
/// the rows and columns in Hugging Face's order; blocks stay as they are, and where they cannot be put in that order the tensor keeps its name.
///
/// # Errors
/// The errors of the header's checks; with Hugging Face's names also those of a model that tabtune does not have.
pub fn open_gguf(files: &SharedFiles, names: NamePolicy) -> Result<OpenedBundle> {
    gguf(files, names, false)
}

/// Options for opening a model of which no values are read.
fn options(unread: bool) -> OpenOptions {
    OpenOptions {
        headers_only: unread,
        ..OpenOptions::default()
    }
}

fn gguf(files: &SharedFiles, names: NamePolicy, unread: bool) -> Result<OpenedBundle> {
    let positions = gguf_files(files);
    let Some(&first) = positions.first() else {
        return Err(Refusal::new(word!("bundle.empty"))
            .expected("a GGUF file")
            .into());
    };
    let (mut file, mut homes, sums) = summed_gguf(files, &positions)?;
    let name = files[first].name();
    // Under the file's own names no value matters, and the model need not be one that tabtune has.
    let of_file = names == NamePolicy::Source;
    let model = open_bundle_with(files.clone(), options(unread || of_file));
    let model = if of_file { model.ok() } else { Some(model?) };
    let family = file.get("general.architecture").and_then(GgufValue::text);
    let family = family.unwrap_or_default().to_string();
    let bound = PortableTokenizerBinding::from_gguf(&file, name);
    let bound = bound_or_refused(bound.map(|bound| bound.map(|binding| (binding, Vec::new()))))?;
    let mut state = OpenedState::new(Identity::of_family(&family), SourceWord::Gguf, name);
    let renaming = model.as_ref().filter(|_| names == NamePolicy::Hf);
    // The header's list is shrunk as the state grows.
    while let (Some(tensor), Some(home)) = (file.tensors.pop(), homes.pop()) {
        if file.tensors.len().is_power_of_two() {
            file.tensors.shrink_to_fit();
        }
        let place = match renaming {
            None => Some((tensor.name.clone(), Reordering::Same)),
            Some(model) => place_in(model, &tensor, &family),
        };
        let Some((key, order)) = place else {
            continue;
        };
        let placed = placed(&tensor, &key, order, &files[home]);
        if state
            .tensors
            .insert(key.clone(), Box::new(placed))
            .is_some()
        {
            return Err(Refusal::new(word!("model.tensor.name-twice"))
                .of(name)
                .subject(&key)
                .into());
        }
    }
    let opened = |file: &BaseFile| {
        Some(OpenedFile {
            header_sha256: file.header_sha256?,
            bytes: file.bytes,
        })
    };
    state.files = sums.iter().filter_map(opened).collect();
    state.inputs = files.iter().map(Input::of).collect();
    Ok(match &model {
        Some(model) => OpenedBundle::of_model(state, model, bound),
        None => {
            state.warnings = file.warnings;
            let metadata = ModelMetadata {
                tokenizer: bound.map(|(binding, _)| binding),
                ..ModelMetadata::default()
            };
            OpenedBundle { state, metadata }
        }
    })
}

/// Hugging Face's name of a tensor of a GGUF file, and the order of its elements in the file; its own name where Hugging Face has none, or
/// where the elements cannot be put in Hugging Face's order. `None` if the model has no use for it.
fn place_in(model: &Bundle, tensor: &FileTensor, family: &str) -> Option<(String, Reordering)> {
    if is_of_config(&tensor.name, &model.config) {
        return None;
    }
    let own = (tensor.name.clone(), Reordering::Same);
    let Some((key, order)) = from_gguf(&tensor.name, family, &model.config) else {
        return Some(own);
    };
    model.shape(&key)?;
    let apart = order.moves_columns() && tensor.shape.len() == 2;
    // Blocks cannot be taken apart.
    let in_blocks = byte_len(&tensor.dtype, &[1]).is_none();
    Some(if apart && in_blocks {
        own
    } else {
        (key, order)
    })
}

/// A tensor of a GGUF file under the name `key`, in Hugging Face's order; its elements have the order `order` in the file.
fn placed(
    tensor: &FileTensor,
    key: &str,
    order: Reordering,
    source: &Rc<dyn ByteSource>,
) -> Tensor {
    let shape = order.shape_of_file(&tensor.shape);
    let bytes = tensor.bytes.unwrap_or(0);
    let bytes = Bytes::ordered(Rc::clone(source), tensor.begin, bytes, order);
    Tensor::parameter(key, &tensor.dtype, &shape, bytes)
}

/// Ignores the refusal of a tokenizer, which leaves the tensors usable; the model's own warnings report it.
fn bound_or_refused(bound: Result<Bound>) -> Result<Bound> {
    match bound {
        Err(error) if error.code().starts_with("tokenizer.") => Ok(None),
        other => other,
    }
}
