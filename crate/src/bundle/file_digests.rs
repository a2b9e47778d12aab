//! Computes the digests of an artifact and the facts that its files state in addition to the values of their tensors: the same way for writers
//! and readers.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::files::MAX_DOCUMENT_BYTES;
use super::gguf_model::summed_gguf;
use super::safetensors_stream::OPTIMIZER_WEIGHTS;
use super::state_json::read_state_json;
use super::tensor_hasher::TensorHasher;
use super::tokenizer_binding::PortableTokenizerBinding;
use crate::error::Result;
use crate::families::{config_from_gguf, names};
use crate::formats::{
    ByteSource, Digest, FileTensor, GgufFile, GgufValue, SafetensorsFile, SourceSpan, base_name,
    read_document,
};
use crate::state::{
    ArtifactDigests, Identity, MANIFEST_FILE, MANIFEST_KEY, Reordering, StateManifest,
    StatedDigests, dequantise, optimizer_digest, weights_digest,
};

impl ArtifactDigests {
    /// Returns the facts of a folder of these documents, with those of its manifest, if it has one.
    pub(crate) fn of_folder(documents: &BTreeMap<String, Vec<u8>>, manifest: Option<Self>) -> Self {
        let plain = || Self {
            identity: named(&family(documents)),
            ..Self::default()
        };
        manifest.unwrap_or_else(plain).with(
            PortableTokenizerBinding::from_documents(documents)
                .ok()
                .flatten()
                .map_or([None, None], |(binding, _)| binding.digests()),
        )
    }

    /// Returns the facts of a GGUF file with these keys.
    pub(super) fn of_gguf(metadata: &[(String, GgufValue)]) -> Self {
        let file = GgufFile {
            metadata: metadata.to_vec(),
            tensors: Vec::new(),
            warnings: Vec::new(),
            header_sha256: Digest::of(&[]),
        };
        let family = file
            .get(ARCHITECTURE)
            .and_then(GgufValue::text)
            .unwrap_or_default();
        let plain = Self {
            identity: named(family),
            ..Self::default()
        };
        plain.with(
            PortableTokenizerBinding::from_gguf(&file, "")
                .ok()
                .flatten()
                .map_or([None, None], |binding| binding.digests()),
        )
    }
}

const ARCHITECTURE: &str = "general.architecture";

fn named(family: &str) -> Identity {
    Identity {
        model_family: family.to_string(),
        ..Identity::default()
    }
}

/// Returns the family that `config.json` names.
fn family(documents: &BTreeMap<String, Vec<u8>>) -> String {
    let config = documents
        .get("config.json")
        .and_then(|bytes| serde_json::from_slice::<serde_json::Value>(bytes).ok());
    config
        .and_then(|config| Some(config.get("model_type")?.as_str()?.to_string()))
        .unwrap_or_default()
}

/// A file of an artifact and its role.
pub(super) type Part<'a> = (&'a str, &'a Rc<dyn ByteSource>);

/// Computes the digests of an artifact, for which all of it is read. If a file leaves open what belongs to its weights, `stated` decides.
pub(super) fn digests_of(files: &[Part<'_>], stated: Option<Digest>) -> Result<StatedDigests> {
    let weights = || {
        files
            .iter()
            .filter(|(role, _)| *role == "weights")
            .map(|(_, source)| *source)
    };
    let ending = |end: &'static str| {
        weights().filter(move |source| base_name(source.name()).to_ascii_lowercase().ends_with(end))
    };
    let gguf: Vec<&Rc<dyn ByteSource>> = ending(".gguf").collect();
    if !gguf.is_empty() {
        return of_gguf(&gguf, stated);
    }
    match ending(".json").next() {
        Some(source) => of_json(source),
        None => of_folder(files),
    }
}

fn of_folder(files: &[Part<'_>]) -> Result<StatedDigests> {
    let (mut weights, mut state, mut manifest) = (BTreeMap::new(), BTreeMap::new(), None);
    let mut documents = BTreeMap::new();
    // Factors are the weights of an adapter's folder, but not of a model that they were merged into.
    let alone = files.iter().all(|(role, _)| *role != "weights");
    for (role, source) in files {
        let name = base_name(source.name());
        match *role {
            "config" | "tokenizer" | "template" => {
                documents.insert(name.to_string(), read_document(source, MAX_DOCUMENT_BYTES)?);
                continue;
            }
            "manifest" if name == MANIFEST_FILE => {
                let text = String::from_utf8_lossy(&read_document(source, MAX_DOCUMENT_BYTES)?)
                    .into_owned();
                manifest = Some(StateManifest::read(&text, name)?);
                continue;
            }
            "weights" | "optimizer" => {}
            "adapter" if alone && name.ends_with(".safetensors") => {}
            _ => continue,
        }
        let file = SafetensorsFile::open(source)?;
        if let Some(text) = file.metadata.get(MANIFEST_KEY) {
            manifest = Some(StateManifest::read(&text, name)?);
        }
        let of_optimizer = *role == "optimizer" || file.metadata.get(OPTIMIZER_WEIGHTS).is_some();
        let leaves = if of_optimizer {
            &mut state
        } else {
            &mut weights
        };
        for tensor in file.tensors {
            let hasher = TensorHasher::plain(&tensor.name, &tensor.dtype, tensor.shape.clone());
            let payload = hasher.payload_in(&span_of(source, &tensor))?;
            leaves.insert(tensor.name, hasher.leaf(payload));
        }
    }
    let told = manifest
        .map(|manifest| ArtifactDigests::of_manifest(&manifest.identity, &manifest.groups))
        .transpose()?;
    let some = |leaves: BTreeMap<String, Digest>,
                digest: fn(&BTreeMap<String, Digest>) -> Digest| {
        (!leaves.is_empty()).then(|| digest(&leaves))
    };
    ArtifactDigests::of_folder(&documents, told)
        .digests(some(weights, weights_digest), some(state, optimizer_digest))
}

fn of_json(source: &Rc<dyn ByteSource>) -> Result<StatedDigests> {
    let read = read_state_json(source)?;
    let (mut weights, mut state) = (BTreeMap::new(), BTreeMap::new());
    for entry in &read.tensors {
        let leaves = if entry.is_state() {
            &mut state
        } else {
            &mut weights
        };
        let leaf = entry.known_leaf();
        leaves.extend(leaf.map(|leaf| (entry.name.clone(), leaf)));
    }
    let known = match &read.manifest {
        Some(manifest) => ArtifactDigests::of_manifest(&manifest.identity, &manifest.groups)?,
        None => ArtifactDigests::default(),
    };
    known.digests(
        Some(weights_digest(&weights)),
        (!state.is_empty()).then(|| optimizer_digest(&state)),
    )
}

/// Computes the digests of a GGUF file. Tensors enter under Hugging Face's names and in its order. A head that is a copy of the embedding may
/// be included, or left out as the head of a tied model; an import under the file's own names includes everything as stored.
fn of_gguf(parts: &[&Rc<dyn ByteSource>], stated: Option<Digest>) -> Result<StatedDigests> {
    let (file, homes, _) = summed_gguf(parts, &(0..parts.len()).collect::<Vec<_>>())?;
    let home = |tensor: &FileTensor| {
        file.tensors
            .iter()
            .position(|one| one.name == tensor.name)
            .map_or(parts[0], |at| parts[homes[at]])
    };
    let family = file
        .get(ARCHITECTURE)
        .and_then(GgufValue::text)
        .unwrap_or_default();
    let divisors = file
        .tensor(names::ROPE_FREQS)
        .map(|tensor| dequantise(home(tensor), tensor))
        .transpose()?;
    let tied = file.tensor("output.weight").is_none();
    let config = config_from_gguf(&file, parts[0].name(), divisors.as_deref(), tied).ok();
    let (mut leaves, mut copy) = (BTreeMap::new(), None);
    for (tensor, &at) in file
        .tensors
        .iter()
        .zip(&homes)
        .filter(|(tensor, _)| config.is_none() || tensor.name != names::ROPE_FREQS)
    {
        let place = config
            .as_ref()
            .and_then(|config| names::from_gguf(&tensor.name, family, config));
        let (key, order) = place.unwrap_or((tensor.name.clone(), Reordering::Same));
        let hasher = TensorHasher::of_gguf(&key, tensor, order);
        let payload = hasher.payload_in(&span_of(parts[at], tensor))?;
        if let Some(config) = config.as_ref().filter(|_| key == names::HEAD) {
            let embedding = names::embedding(config.architecture);
            copy = Some((
                embedding,
                TensorHasher::of_gguf(embedding, tensor, order).leaf(payload),
            ));
        }
        leaves.insert(hasher.key.clone(), hasher.leaf(payload));
    }
    let mut weights = weights_digest(&leaves);
    if stated.is_some_and(|stated| stated != weights) {
        if copy.is_some_and(|(embedding, head)| leaves.get(embedding) == Some(&head)) {
            leaves.remove(names::HEAD);
            weights = weights_digest(&leaves);
        }
        let own = if Some(weights) == stated {
            weights
        } else {
            as_it_stands(parts, &homes, &file)?
        };
        weights = if Some(own) == stated { own } else { weights };
    }
    ArtifactDigests::of_gguf(&file.metadata).digests(Some(weights), None)
}

/// Returns the bytes of a tensor in its file.
fn span_of(source: &Rc<dyn ByteSource>, tensor: &FileTensor) -> SourceSpan {
    SourceSpan {
        source: Rc::clone(source),
        begin: tensor.begin,
        bytes: tensor.bytes.unwrap_or(0),
    }
}

fn as_it_stands(parts: &[&Rc<dyn ByteSource>], homes: &[usize], file: &GgufFile) -> Result<Digest> {
    let mut leaves = BTreeMap::new();
    for (tensor, &at) in file.tensors.iter().zip(homes) {
        let hasher = TensorHasher::of_gguf(&tensor.name, tensor, Reordering::Same);
        let payload = hasher.payload_in(&span_of(parts[at], tensor))?;
        leaves.insert(tensor.name.clone(), hasher.leaf(payload));
    }
    Ok(weights_digest(&leaves))
}
