//! Reads and writes a state dict as safetensors files, with their manifest if they have one (crate/FORMATS.md, "Manifest and groups").

use std::rc::Rc;

use super::torch_optimizer::{PARAM_GROUPS, TorchOptimizer};
use crate::bundle::{Contents, FileStream, OPTIMIZER_WEIGHTS, format_pt};
use crate::error::{Error, Refusal, Result, Warning, word};
use crate::formats::{ByteSource, Digest, SafetensorsFile, base_name, read_document};
use crate::state::{
    ArtifactDigests, Input, MANIFEST_FILE, MANIFEST_KEY, MODEL_FILE, OPTIMIZER_FILE, OpenedFile,
    OpenedState, PortableModelStateDict, RECEIPT, SourceWord, StateManifest, Tensor, TensorRole,
    canonical,
};

/// Maximum size of a manifest file.
const MAX_MANIFEST_BYTES: u64 = 64 << 20;

/// A safetensors file whose header was read.
struct Part {
    source: Rc<dyn ByteSource>,
    file: SafetensorsFile,
}

/// Describes a file whose header was read.
pub(super) fn opened_file(source: &dyn ByteSource, file: &SafetensorsFile) -> OpenedFile {
    OpenedFile {
        header_sha256: file.header_sha256,
        bytes: source.len(),
    }
}

impl Part {
    fn open(source: Rc<dyn ByteSource>) -> Result<Self> {
        let file = SafetensorsFile::open(&source)?;
        Ok(Self { source, file })
    }

    fn is_optimizer(&self) -> bool {
        self.file.metadata.get(OPTIMIZER_WEIGHTS).is_some()
            || base_name(self.source.name()) == OPTIMIZER_FILE
    }

    /// The digest of the weights that it belongs to, which an optimizer file must state.
    fn belongs_to(&self) -> Result<Digest> {
        let stated = self.file.metadata.get(OPTIMIZER_WEIGHTS);
        let stated = stated.as_deref();
        let wrong = || {
            Refusal::new(word!("manifest.optimizer.mismatch"))
                .of(self.source.name())
                .subject(OPTIMIZER_WEIGHTS)
                .expected("the digest of the weights that it belongs to")
                .found(stated.unwrap_or("none"))
        };
        Ok(stated.and_then(Digest::from_hex).ok_or_else(wrong)?)
    }
}

/// Adds the state of an optimizer of PyTorch, which takes the place of groups that the state does not have.
fn add_torch(state: &mut OpenedState, part: &Part) -> Result<()> {
    if !state.groups.is_empty() {
        return Err(Refusal::new(word!("manifest.optimizer.mismatch"))
            .of(part.source.name())
            .subject(PARAM_GROUPS)
            .expected("no groups, as there are some already")
            .found("groups of PyTorch")
            .into());
    }
    let groups = part.file.metadata.get(PARAM_GROUPS);
    let read = TorchOptimizer::read(
        &part.source,
        &part.file,
        groups.as_deref().unwrap_or_default(),
    )?;
    state.files.push(opened_file(&part.source, &part.file));
    state.groups = read.groups;
    let named = read
        .tensors
        .into_iter()
        .map(|tensor| (tensor.name.clone(), Box::new(tensor)));
    state.tensors.extend(named);
    Ok(())
}

/// Reads the headers of one artifact: one safetensors file or shards, `tabtune.manifest.json` of shards, and an optimizer file, if present.
/// Without a manifest it is a plain state dict: parameters without groups, whose paths follow from their names. A receipt is skipped.
///
/// # Errors
/// The errors of [`SafetensorsFile::open`]; `bundle.empty` without weights; `index.tensor.duplicate` for a name in two files; `manifest.*` if
/// the manifest does not agree with the files.
pub fn open_safetensors(files: Vec<Rc<dyn ByteSource>>) -> Result<OpenedState> {
    let inputs = files.iter().map(Input::of).collect();
    let document = files
        .iter()
        .find(|file| base_name(file.name()) == MANIFEST_FILE)
        .cloned();
    let parts = files
        .into_iter()
        .filter(|file| !matches!(base_name(file.name()), MANIFEST_FILE | RECEIPT))
        .map(Part::open)
        .collect::<Result<Vec<_>>>()?;
    let is_torch = |part: &Part| part.file.metadata.get(PARAM_GROUPS).is_some();
    let (torch, parts): (Vec<Part>, Vec<Part>) = parts.into_iter().partition(is_torch);
    let (mut optimizer, weights): (Vec<Part>, Vec<Part>) =
        parts.into_iter().partition(Part::is_optimizer);
    let Some(first) = weights.first().or(torch.first()) else {
        return Err(Refusal::new(word!("bundle.empty"))
            .expected("a safetensors file of weights")
            .into());
    };
    let artifact = first.source.name();
    let inside = weights
        .iter()
        .find_map(|part| part.file.metadata.get(MANIFEST_KEY));
    let manifest = match (inside, &document) {
        (Some(text), _) => Some(StateManifest::read(&text, artifact)?),
        (None, Some(document)) => Some(StateManifest::read(
            &document_text(document)?,
            document.name(),
        )?),
        (None, None) => None,
    };
    let identity = manifest.as_ref().map(|manifest| manifest.identity.clone());
    let mut state = OpenedState {
        inputs,
        ..OpenedState::new(
            identity.unwrap_or_default(),
            SourceWord::Safetensors,
            artifact,
        )
    };
    if manifest.is_none() {
        // Without a manifest, the group of a state tensor is unknown.
        let unused =
            |part: Part| Warning::new(word!("bundle.unused"), base_name(part.source.name()));
        state.warnings.extend(optimizer.drain(..).map(unused));
    }
    state.optimizer_of = optimizer.first().map(Part::belongs_to).transpose()?;
    for Part { source, file } in weights.iter().chain(&optimizer) {
        state.files.push(opened_file(source, file));
        state.warnings.extend(file.warnings.iter().cloned());
        for record in &file.tensors {
            let mut tensor = Tensor::in_file(record, source);
            if let Some(manifest) = &manifest {
                tensor = manifest.complete(tensor);
            }
            let before = state.tensors.insert(record.name.clone(), Box::new(tensor));
            if before.is_some() {
                return Err(Refusal::new(word!("index.tensor.duplicate"))
                    .of(source.name())
                    .subject(&record.name)
                    .into());
            }
        }
    }
    if let Some(manifest) = manifest {
        add_manifest(&mut state, manifest)?;
    }
    for part in &torch {
        add_torch(&mut state, part)?;
    }
    Ok(state)
}

/// Adds the manifest, which must agree with the tensors, and its groups if their state tensors are present.
fn add_manifest(state: &mut OpenedState, manifest: StateManifest) -> Result<()> {
    let of = |tensor: &Tensor| {
        let file = tensor.file().unwrap_or_default().to_string();
        (tensor.dtype.clone(), tensor.shape.clone(), file)
    };
    let found = state
        .tensors
        .iter()
        .map(|(key, tensor)| (key.clone(), of(tensor)))
        .collect();
    manifest.check_against(&found, &state.artifact)?;
    if manifest.absent_optimizer_files(&found).is_empty() {
        state.groups.clone_from(&manifest.groups);
    } else {
        let absent = Warning::new(word!("manifest.optimizer.absent"), OPTIMIZER_FILE);
        state.warnings.push(absent);
    }
    state.stated = manifest.digests.clone().unwrap_or_default();
    state.manifest = Some(manifest);
    Ok(())
}

fn document_text(document: &Rc<dyn ByteSource>) -> Result<String> {
    let wrong = |_| {
        Error::from(
            Refusal::new(word!("manifest.json"))
                .of(document.name())
                .expected("UTF-8"),
        )
    };
    String::from_utf8(read_document(document, MAX_MANIFEST_BYTES)?).map_err(wrong)
}

impl PortableModelStateDict {
    /// Writes the state as `model.safetensors` with its manifest and, if it has state tensors, `optimizer.safetensors`. `manifest` is this
    /// state's own, completed with facts that a state dict does not have; the file of each tensor is set here. Values are read when they are
    /// written; with state tensors the weights are read before, for their digest.
    ///
    /// # Errors
    /// `export.safetensors.quantised` for blocks, `export.name.invalid` for a name that the format cannot hold.
    pub async fn export_safetensors(&self, manifest: &StateManifest) -> Result<FileStream> {
        self.safetensors_stream(MODEL_FILE, manifest).await
    }

    /// Writes the same with the weights in the file `name`.
    pub(super) async fn safetensors_stream(
        &self,
        name: &str,
        manifest: &StateManifest,
    ) -> Result<FileStream> {
        if let Some(blocks) = self.tensors().values().find(|tensor| tensor.is_blocks()) {
            return Err(Refusal::new(word!("export.safetensors.quantised"))
                .of(MODEL_FILE)
                .subject(&blocks.name)
                .found(&blocks.dtype)
                .hint("dequantise it: ask for a dtype (f32, bf16 or f16)")
                .into());
        }
        let (state, weights): (Vec<_>, Vec<_>) =
            self.tensors().values().cloned().partition(Tensor::is_state);
        let mut manifest = manifest.clone();
        (manifest.digests, manifest.files) = (None, None);
        for record in manifest.tensors.values_mut() {
            let is_state = matches!(record.role, TensorRole::State(_));
            let file = if is_state { OPTIMIZER_FILE } else { MODEL_FILE };
            record.file = file.to_string();
        }
        let of_model = format_pt([(MANIFEST_KEY, canonical(&manifest)?)]);
        let mut stream = FileStream::summed();
        stream.push_safetensors_as(name, weights, None, Contents::Weights, &of_model)?;
        if !state.is_empty() {
            let weights = self.weights_digest().await?;
            let of_state = format_pt([(OPTIMIZER_WEIGHTS, weights.to_string())]);
            stream.push_safetensors_as(OPTIMIZER_FILE, state, None, Contents::State, &of_state)?;
        }
        stream.know(ArtifactDigests::of_manifest(
            &manifest.identity,
            &manifest.groups,
        )?);
        Ok(stream)
    }
}
