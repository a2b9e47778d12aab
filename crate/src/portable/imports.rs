//! Opens the containers that hold more than a state: checkpoint, Hugging Face folder, GGUF file. They are read by the readers of models.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::model_metadata::{Bound, ModelMetadata};
use super::safetensors::open_safetensors;
use crate::bundle::{
    OpenOptions, PortableTokenizerBinding, gguf_files, open_bundle, open_bundle_with, summed_gguf,
};
use crate::checkpoint::{Checkpoint, Manifest};
use crate::config::ModelConfig;
use crate::error::{Error, Refusal, Result, word};
use crate::families::{HEAD, ROPE_FREQS, from_gguf};
use crate::formats::{ByteSource, Digest, FileTensor, GgufValue, Hasher, base_name};
use crate::state::{
    BaseFile, Bytes, Identity, Input, MANIFEST_FILE, NamePolicy, OpenedFile, OpenedState,
    Reordering, SourceWord, StateManifest, StatedDigests, Tensor, byte_len,
};

/// Files of one artifact, which its tensors share.
pub type SharedFiles = Vec<Rc<dyn ByteSource>>;

/// An artifact whose headers were read, with everything that is no tensor.
#[derive(Debug, Clone)]
pub struct OpenedBundle {
    /// Tensors and groups.
    pub state: OpenedState,
    /// Configuration, tokenizer, origin.
    pub metadata: ModelMetadata,
}

/// Reads a checkpoint folder and verifies its bytes.
///
/// # Errors
/// The errors of [`Checkpoint::open`]; `checkpoint.corrupt` for a tokenizer other than the one that the manifest describes.
pub fn open_checkpoint(files: &SharedFiles) -> Result<OpenedBundle> {
    let checkpoint = Checkpoint::open(files.clone(), None)?;
    let Manifest {
        identity,
        tensors: records,
        groups,
        tokenizer: said,
        base,
        ..
    } = checkpoint.manifest().clone();
    let bound = PortableTokenizerBinding::from_hf_folder(files)?;
    if said.is_some() && said != bound.as_ref().map(|(binding, _)| binding.account()) {
        let reason = "it does not describe the documents next to it".to_string();
        return Err(Error::CheckpointCorrupt {
            what: "tokenizer".into(),
            reason,
        });
    }
    let stored: BTreeMap<&str, &Tensor> = checkpoint
        .tensors()
        .map(|tensor| (tensor.name.as_str(), tensor))
        .collect();
    let mut sources: Vec<&Rc<dyn ByteSource>> = Vec::new();
    let mut state = empty(identity.clone(), SourceWord::Checkpoint, "checkpoint.json");
    for (key, record) in &records {
        let Some(tensor) = stored.get(key.as_str()) else {
            continue;
        };
        let home = tensor.span().map(|span| &span.source);
        if let Some(home) = home
            && !sources.iter().any(|source| source.name() == home.name())
        {
            sources.push(home);
        }
        let tensor = Tensor::clone(tensor).described(record.clone().manifest(key));
        state.tensors.insert(key.clone(), Box::new(tensor));
    }
    state.files = sources
        .into_iter()
        .map(|source| header(source, safetensors_header_bytes(source)?))
        .collect::<Result<_>>()?;
    state.inputs = files.iter().map(Input::of).collect();
    let mut manifest = StateManifest::new(identity, records, groups.clone());
    (manifest.base, manifest.tokenizer) = (base, said);
    state.manifest = Some(manifest);
    state.groups = groups;
    let mut metadata = ModelMetadata::of_model(checkpoint.bundle(), bound);
    metadata.base.clone_from(&checkpoint.manifest().base);
    state.warnings = std::mem::take(&mut metadata.warnings);
    Ok(OpenedBundle { state, metadata })
}

/// Reads a Hugging Face folder: its configuration, its weights with their manifest if they have one, its tokenizer. A head that is a copy of
/// the input embedding of a tied model is left out.
///
/// # Errors
/// The errors of [`open_bundle`] and [`open_safetensors`].
pub fn open_hf_folder(files: &SharedFiles) -> Result<OpenedBundle> {
    let bundle = open_bundle(files.clone())?;
    let bound = bound_or_refused(PortableTokenizerBinding::from_hf_folder(files))?;
    let shards: BTreeSet<String> = bundle
        .weight_files()
        .into_iter()
        .map(String::from)
        .collect();
    let wanted = |name: &str| {
        shards.contains(name) || matches!(name, MANIFEST_FILE | "optimizer.safetensors")
    };
    let mut state = open_safetensors(
        files
            .iter()
            .filter(|file| wanted(base_name(file.name())))
            .cloned()
            .collect(),
    )?;
    if bundle.shape(HEAD).is_none() {
        state.tensors.remove(HEAD);
    }
    state.source_format = SourceWord::HfFolder;
    state.inputs = files.iter().map(Input::of).collect();
    if state.manifest.is_none() {
        state.identity = Identity {
            model_family: bundle.config.model_type.clone(),
            ..Identity::default()
        };
    }
    let mut metadata = ModelMetadata::of_model(&bundle, bound);
    state.warnings.append(&mut metadata.warnings);
    Ok(OpenedBundle { state, metadata })
}

/// Reads a GGUF file, or all parts of one. Every tensor is listed under its own name, or, with [`NamePolicy::Hf`], under Hugging Face's with
/// the rows and columns in Hugging Face's order; blocks stay as they are, and where they cannot be put in that order the tensor keeps its name.
///
/// # Errors
/// The errors of the header's checks; with Hugging Face's names also those of a model that tabtune does not have.
pub fn open_gguf(files: &SharedFiles, names: NamePolicy) -> Result<OpenedBundle> {
    let positions = gguf_files(files);
    if positions.is_empty() {
        return Err(Refusal::new(word!("bundle.empty"))
            .expected("a GGUF file")
            .into());
    }
    let (mut file, mut homes, sums) = summed_gguf(files, &positions)?;
    let name = files[positions[0]].name().to_string();
    // Under the file's own names no value matters, and the model need not be one that tabtune has.
    let headers_only = names == NamePolicy::Source;
    let model = open_bundle_with(
        files.clone(),
        OpenOptions {
            headers_only,
            ..OpenOptions::default()
        },
    );
    let model = if headers_only {
        model.ok()
    } else {
        Some(model?)
    };
    let family = file
        .get("general.architecture")
        .and_then(GgufValue::text)
        .unwrap_or_default()
        .to_string();
    let bound = bound_or_refused(
        PortableTokenizerBinding::from_gguf(&file, &name)
            .map(|bound| bound.map(|binding| (binding, Vec::new()))),
    )?;
    let mut state = empty(
        Identity {
            model_family: family.clone(),
            ..Identity::default()
        },
        SourceWord::Gguf,
        &name,
    );
    let kept: Option<BTreeSet<String>> = model
        .as_ref()
        .filter(|_| names == NamePolicy::Hf)
        .map(|bundle| bundle.names().into_iter().collect());
    // The header's list is shrunk as the state grows.
    while let (Some(tensor), Some(home)) = (file.tensors.pop(), homes.pop()) {
        if file.tensors.len().is_power_of_two() {
            file.tensors.shrink_to_fit();
        }
        let source = &files[home];
        let config = model
            .as_ref()
            .map(|bundle| &bundle.config)
            .filter(|_| names == NamePolicy::Hf);
        let Some(tensor) = placed(&tensor, source, &family, config, kept.as_ref()) else {
            continue;
        };
        let key = tensor.name.clone();
        if state
            .tensors
            .insert(key.clone(), Box::new(tensor))
            .is_some()
        {
            return Err(Refusal::new(word!("model.tensor.name-twice"))
                .of(&name)
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
    let mut metadata = match &model {
        Some(bundle) => ModelMetadata::of_model(bundle, bound),
        None => ModelMetadata {
            tokenizer: bound.map(|(binding, _)| binding),
            warnings: file.warnings.clone(),
            ..ModelMetadata::default()
        },
    };
    state.warnings = std::mem::take(&mut metadata.warnings);
    Ok(OpenedBundle { state, metadata })
}

/// Returns a tensor of a GGUF file; `None` if the model has no use for it.
fn placed(
    tensor: &FileTensor,
    source: &Rc<dyn ByteSource>,
    family: &str,
    config: Option<&ModelConfig>,
    kept: Option<&BTreeSet<String>>,
) -> Option<Tensor> {
    let bytes = tensor.bytes.unwrap_or(0);
    let stored = |order| Bytes::ordered(Rc::clone(source), tensor.begin, bytes, order);
    let own = || {
        let bytes = stored(Reordering::Same);
        Some(Tensor::parameter(
            &tensor.name,
            &tensor.dtype,
            &tensor.shape,
            bytes,
        ))
    };
    let (Some(config), Some(kept)) = (config, kept) else {
        return own();
    };
    if tensor.name == ROPE_FREQS {
        return None;
    }
    let Some((key, order)) = from_gguf(&tensor.name, family, config) else {
        return own();
    };
    if !kept.contains(&key) {
        return None;
    }
    match (order, tensor.shape.as_slice()) {
        // Blocks cannot be transposed.
        (Reordering::Transposed, [_, _]) if byte_len(&tensor.dtype, &[1]).is_none() => own(),
        (order, of_file) => {
            let mut shape = of_file.to_vec();
            if order == Reordering::Transposed {
                shape.reverse();
            }
            Some(Tensor::parameter(
                &key,
                &tensor.dtype,
                &shape,
                stored(order),
            ))
        }
    }
}

fn empty(identity: Identity, source_format: SourceWord, artifact: &str) -> OpenedState {
    OpenedState {
        identity,
        source_format,
        tensors: std::collections::BTreeMap::new(),
        groups: Vec::new(),
        manifest: None,
        stated: StatedDigests::default(),
        optimizer_of: None,
        checks: None,
        files: Vec::new(),
        inputs: Vec::new(),
        artifact: artifact.to_string(),
        warnings: Vec::new(),
    }
}

/// Ignores the refusal of a tokenizer, which leaves the tensors usable; the model's own warnings report it.
fn bound_or_refused(bound: Result<Bound>) -> Result<Bound> {
    match bound {
        Err(error) if error.code().starts_with("tokenizer.") => Ok(None),
        other => other,
    }
}

/// Returns the bytes of the length word and header of a safetensors file that was read before.
fn safetensors_header_bytes(source: &dyn ByteSource) -> Result<u64> {
    let mut length = [0; 8];
    source.read_at(0, &mut length)?;
    Ok(u64::from_le_bytes(length).saturating_add(8))
}

/// Describes the file with the digest of its first `bytes` bytes.
fn header(source: &dyn ByteSource, bytes: u64) -> Result<OpenedFile> {
    const PIECE: u64 = 4 << 20;
    let (mut hasher, mut at, mut buffer) = (Hasher::new(), 0, Vec::new());
    while at < bytes {
        let now = PIECE.min(bytes - at);
        buffer.resize(usize::try_from(now).unwrap_or(0), 0);
        source.read_at(at, &mut buffer)?;
        hasher.update(&buffer);
        at += now;
    }
    let header_sha256: Digest = hasher.finish();
    Ok(OpenedFile {
        header_sha256,
        bytes: source.len(),
    })
}
