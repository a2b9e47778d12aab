//! Computes the digests of an artifact and the facts that its files state in addition to the values of their tensors: the same way for writers
//! and readers.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::bundle_tokenizer::value_of;
use super::checksums::Leaves;
use super::files::{CONFIG, MAX_DOCUMENT_BYTES, lower_name};
use super::gguf_model::{divisors, summed_gguf};
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
    StatedDigests, optimizer_digest, weights_digest,
};

impl ArtifactDigests {
    /// Collects the facts of a folder of these documents, with those of its manifest, if it has one.
    pub(crate) fn of_folder(documents: &BTreeMap<String, Vec<u8>>, manifest: Option<Self>) -> Self {
        let config = value_of(documents.get(CONFIG).map(Vec::as_slice));
        let family = config["model_type"].as_str().unwrap_or_default();
        let known = manifest.unwrap_or_else(|| Self::of_family(family));
        let binding = PortableTokenizerBinding::from_documents(documents);
        let binding = binding.ok().flatten().map(|(binding, _)| binding);
        known.with_tokenizer(binding)
    }

    /// Collects the facts of a GGUF file with these keys.
    pub(super) fn of_gguf(metadata: &[(String, GgufValue)]) -> Self {
        let file = GgufFile {
            metadata: metadata.to_vec(),
            tensors: Vec::new(),
            warnings: Vec::new(),
            header_sha256: Digest::of(&[]),
        };
        let binding = PortableTokenizerBinding::from_gguf(&file, "");
        Self::of_family(family(&file)).with_tokenizer(binding.ok().flatten())
    }

    fn of_family(family: &str) -> Self {
        Self {
            identity: Identity {
                model_family: family.to_string(),
                ..Identity::default()
            },
            ..Self::default()
        }
    }

    fn with_tokenizer(self, binding: Option<PortableTokenizerBinding>) -> Self {
        self.with(binding.map_or([None, None], |binding| binding.digests()))
    }
}

/// Collects the facts of a GGUF file, or of all parts of one.
pub(super) fn gguf_facts(parts: &[Rc<dyn ByteSource>]) -> Result<ArtifactDigests> {
    let all: Vec<usize> = (0..parts.len()).collect();
    Ok(ArtifactDigests::of_gguf(
        &summed_gguf(parts, &all)?.0.metadata,
    ))
}

/// The family that a GGUF file names.
fn family(file: &GgufFile) -> &str {
    let family = file.get("general.architecture").and_then(GgufValue::text);
    family.unwrap_or_default()
}

/// A file of an artifact and its role.
pub(super) type Part<'a> = (&'a str, &'a Rc<dyn ByteSource>);

/// Computes the digests of an artifact, for which all of it is read. If a file leaves open what belongs to its weights, `stated` decides.
pub(super) fn digests_of(files: &[Part<'_>], stated: Option<Digest>) -> Result<StatedDigests> {
    let ending = |end: &'static str| {
        let weights = files.iter().filter(|(role, _)| *role == "weights");
        weights
            .map(|(_, source)| *source)
            .filter(move |source| lower_name(source).ends_with(end))
    };
    let gguf: Vec<Rc<dyn ByteSource>> = ending(".gguf").cloned().collect();
    if !gguf.is_empty() {
        return of_gguf(&gguf, stated);
    }
    match ending(".json").next() {
        Some(source) => of_json(source),
        None => of_folder(files),
    }
}

fn of_folder(files: &[Part<'_>]) -> Result<StatedDigests> {
    let (mut weights, mut state, mut manifest) = (Leaves::new(), Leaves::new(), None);
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
                let bytes = read_document(source, MAX_DOCUMENT_BYTES)?;
                manifest = Some(StateManifest::read(&String::from_utf8_lossy(&bytes), name)?);
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
            let leaf = hasher.leaf_in(&span_of(source, &tensor))?;
            leaves.insert(tensor.name, leaf);
        }
    }
    let told = manifest
        .map(|manifest| ArtifactDigests::of_manifest(&manifest.identity, &manifest.groups))
        .transpose()?;
    ArtifactDigests::of_folder(&documents, told).digests(
        (!weights.is_empty()).then(|| weights_digest(&weights)),
        (!state.is_empty()).then(|| optimizer_digest(&state)),
    )
}

fn of_json(source: &Rc<dyn ByteSource>) -> Result<StatedDigests> {
    let read = read_state_json(source)?;
    let (state, weights): (Vec<_>, Vec<_>) = read.tensors.iter().partition(|one| one.is_state());
    let [weights, state] = [weights, state].map(|tensors| {
        let leaves = tensors.into_iter();
        leaves
            .filter_map(|one| Some((one.name.clone(), one.known_leaf()?)))
            .collect::<Leaves>()
    });
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
fn of_gguf(parts: &[Rc<dyn ByteSource>], stated: Option<Digest>) -> Result<StatedDigests> {
    let (file, homes, _) = summed_gguf(parts, &(0..parts.len()).collect::<Vec<_>>())?;
    let family = family(&file);
    let divisors = divisors(&file, &homes, parts)?;
    let tied = file.tensor("output.weight").is_none();
    let config = config_from_gguf(&file, parts[0].name(), &divisors, tied).ok();
    let tensors = || {
        let tensors = file.tensors.iter().zip(&homes);
        tensors.map(|(tensor, &at)| (tensor, span_of(&parts[at], tensor)))
    };
    let (mut leaves, mut copy) = (Leaves::new(), None);
    for (tensor, span) in tensors() {
        let place = match &config {
            Some(config) if names::is_of_config(&tensor.name, config) => continue,
            Some(config) => names::from_gguf(&tensor.name, family, config),
            None => None,
        };
        let (key, order) = place.unwrap_or((tensor.name.clone(), Reordering::Same));
        let hasher = TensorHasher::of_gguf(&key, tensor, order);
        let payload = hasher.payload_in(&span)?;
        if let Some(config) = config.as_ref().filter(|_| key == names::HEAD) {
            let embedding = names::embedding(config.architecture);
            let as_embedding = TensorHasher::of_gguf(embedding, tensor, order);
            copy = Some((embedding, as_embedding.leaf(payload)));
        }
        let leaf = hasher.leaf(payload);
        leaves.insert(hasher.key, leaf);
    }
    let mut weights = weights_digest(&leaves);
    if let Some(stated) = stated.filter(|stated| *stated != weights) {
        if copy.is_some_and(|(embedding, head)| leaves.get(embedding) == Some(&head)) {
            leaves.remove(names::HEAD);
            weights = weights_digest(&leaves);
        }
        if weights != stated {
            let mut stored = Leaves::new();
            for (tensor, span) in tensors() {
                let hasher = TensorHasher::of_gguf(&tensor.name, tensor, Reordering::Same);
                stored.insert(tensor.name.clone(), hasher.leaf_in(&span)?);
            }
            if weights_digest(&stored) == stated {
                weights = stated;
            }
        }
    }
    ArtifactDigests::of_gguf(&file.metadata).digests(Some(weights), None)
}

/// The bytes of a tensor in its file.
fn span_of(source: &Rc<dyn ByteSource>, tensor: &FileTensor) -> SourceSpan {
    SourceSpan {
        source: Rc::clone(source),
        begin: tensor.begin,
        bytes: tensor.bytes.unwrap_or(0),
    }
}
