//! Reads and writes a state dict as safetensors files, with their manifest if they have one (crate/FORMATS.md, "Manifest and groups").

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::bundle::{Contents, FileStream, OPTIMIZER_WEIGHTS};
use crate::error::{Error, Refusal, Result, Warning, word};
use crate::formats::{ByteSource, Digest, FileTensor, SafetensorsFile, base_name, read_whole};
use crate::state::{
    ArtifactDigests, Bytes, Input, MANIFEST_FILE, MANIFEST_KEY, MODEL_FILE, OPTIMIZER_FILE,
    OpenedFile, OpenedState, PortableModelStateDict, RECEIPT, SourceWord, StateManifest, Tensor,
    TensorRole, canonical,
};

/// Maximum size of a manifest file.
const MAX_MANIFEST_BYTES: u64 = 64 << 20;

/// A safetensors file whose header was read.
struct Part {
    source: Rc<dyn ByteSource>,
    file: SafetensorsFile,
    opened: OpenedFile,
}

impl Part {
    fn open(source: Rc<dyn ByteSource>) -> Result<Self> {
        let file = SafetensorsFile::open(&source)?;
        let opened = OpenedFile {
            header_sha256: file.header_sha256,
            bytes: source.len(),
        };
        Ok(Self {
            source,
            file,
            opened,
        })
    }

    fn is_optimizer(&self) -> bool {
        self.file.metadata.get(OPTIMIZER_WEIGHTS).is_some()
            || base_name(self.source.name()) == OPTIMIZER_FILE
    }

    /// Returns the digest of the weights that it belongs to, which an optimizer file must state.
    fn belongs_to(&self) -> Result<Digest> {
        let stated = self.file.metadata.get(OPTIMIZER_WEIGHTS);
        let refusal = Refusal::new(word!("manifest.optimizer.mismatch"))
            .of(self.source.name())
            .subject(OPTIMIZER_WEIGHTS);
        let wrong = || {
            refusal
                .expected("the digest of the weights that it belongs to")
                .found(stated.as_deref().unwrap_or("none"))
        };
        Ok(stated
            .as_deref()
            .and_then(Digest::from_hex)
            .ok_or_else(wrong)?)
    }
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
    let (mut optimizer, weights): (Vec<Part>, Vec<Part>) =
        parts.into_iter().partition(Part::is_optimizer);
    let Some(first) = weights.first() else {
        return Err(Refusal::new(word!("bundle.empty"))
            .expected("a safetensors file of weights")
            .into());
    };
    let artifact = first.source.name().to_string();
    let inside = weights
        .iter()
        .find_map(|part| part.file.metadata.get(MANIFEST_KEY));
    let manifest = match (inside, &document) {
        (Some(text), _) => Some(StateManifest::read(&text, &artifact)?),
        (None, Some(document)) => Some(StateManifest::read(
            &document_text(document)?,
            document.name(),
        )?),
        (None, None) => None,
    };
    let mut warnings = Vec::new();
    if manifest.is_none() {
        // Without a manifest, the group of a state tensor is unknown.
        warnings.extend(
            optimizer
                .drain(..)
                .map(|part| Warning::new(word!("bundle.unused"), base_name(part.source.name()))),
        );
    }
    let optimizer_of = optimizer.first().map(Part::belongs_to).transpose()?;
    let mut opened_files = Vec::new();
    let mut tensors: BTreeMap<String, Box<Tensor>> = BTreeMap::new();
    for part in weights.iter().chain(&optimizer) {
        opened_files.push(part.opened);
        warnings.extend(part.file.warnings.iter().cloned());
        for tensor in &part.file.tensors {
            let opened = Box::new(opened_tensor(part, tensor, manifest.as_ref()));
            if tensors.insert(tensor.name.clone(), opened).is_some() {
                return Err(Refusal::new(word!("index.tensor.duplicate"))
                    .of(part.source.name())
                    .subject(&tensor.name)
                    .into());
            }
        }
    }
    let mut groups = Vec::new();
    if let Some(manifest) = &manifest {
        let of = |tensor: &Tensor| {
            let file = tensor.file().unwrap_or_default().to_string();
            (tensor.dtype.clone(), tensor.shape.clone(), file)
        };
        let found = tensors
            .iter()
            .map(|(key, tensor)| (key.clone(), of(tensor)))
            .collect();
        manifest.check_against(&found, &artifact)?;
        if manifest.absent_optimizer_files(&found).is_empty() {
            groups.clone_from(&manifest.groups);
        } else {
            warnings.push(Warning::new(
                word!("manifest.optimizer.absent"),
                OPTIMIZER_FILE,
            ));
        }
    }
    Ok(OpenedState {
        identity: manifest
            .as_ref()
            .map(|manifest| manifest.identity.clone())
            .unwrap_or_default(),
        source_format: SourceWord::Safetensors,
        tensors,
        groups,
        stated: manifest
            .as_ref()
            .and_then(|manifest| manifest.digests.clone())
            .unwrap_or_default(),
        manifest,
        optimizer_of,
        checks: None,
        files: opened_files,
        inputs,
        artifact,
        warnings,
    })
}

fn document_text(document: &Rc<dyn ByteSource>) -> Result<String> {
    if document.len() > MAX_MANIFEST_BYTES {
        let refusal = Refusal::new(word!("source.too-large")).of(document.name());
        return Err(refusal
            .expected(format!("at most {MAX_MANIFEST_BYTES} bytes"))
            .found(document.len())
            .into());
    }
    let wrong = |_| {
        Error::from(
            Refusal::new(word!("manifest.json"))
                .of(document.name())
                .expected("UTF-8"),
        )
    };
    String::from_utf8(read_whole(document)?).map_err(wrong)
}

fn opened_tensor(part: &Part, record: &FileTensor, manifest: Option<&StateManifest>) -> Tensor {
    let size = record.end() - record.begin;
    let bytes = Bytes::of_source(part.source.clone(), record.begin, size);
    let tensor = Tensor::parameter(&record.name, &record.dtype, &record.shape, bytes);
    match manifest {
        Some(manifest) => manifest.complete(tensor),
        None => tensor,
    }
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
            let refusal = Refusal::new(word!("export.safetensors.quantised"))
                .of(MODEL_FILE)
                .subject(&blocks.name)
                .found(&blocks.dtype);
            return Err(refusal
                .hint("dequantise it: ask for a dtype (f32, bf16 or f16)")
                .into());
        }
        let (state, weights): (Vec<_>, Vec<_>) =
            self.tensors().values().cloned().partition(Tensor::is_state);
        let mut manifest = manifest.clone();
        (manifest.digests, manifest.files) = (None, None);
        for record in manifest.tensors.values_mut() {
            record.file = if matches!(record.role, TensorRole::State(_)) {
                OPTIMIZER_FILE
            } else {
                MODEL_FILE
            }
            .to_string();
        }
        let text = |key: &str, value: String| (key.to_string(), value);
        let mut stream = FileStream::summed();
        let metadata = BTreeMap::from([
            text("format", "pt".to_string()),
            text(MANIFEST_KEY, canonical(&manifest)?),
        ]);
        stream.push_safetensors_as(name, weights, None, Contents::Weights, &metadata)?;
        if !state.is_empty() {
            let weights = self.weights_digest().await?;
            let metadata = BTreeMap::from([
                text("format", "pt".to_string()),
                text(OPTIMIZER_WEIGHTS, weights.to_string()),
            ]);
            stream.push_safetensors_as(OPTIMIZER_FILE, state, None, Contents::State, &metadata)?;
        }
        stream.know(ArtifactDigests::of_manifest(
            &manifest.identity,
            &manifest.groups,
        )?);
        Ok(stream)
    }
}
