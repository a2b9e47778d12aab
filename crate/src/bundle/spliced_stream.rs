//! Writes copies of weight files in which some tensors have other bytes: everything else stays as it is, byte for byte.

use std::rc::Rc;

use super::file_digests::gguf_facts;
use super::files::gguf_files;
use super::stream::{FileStream, Segment};
use crate::error::Result;
use crate::formats::{ByteSource, Digest, SafetensorsFile};
use crate::state::{ArtifactDigests, Bytes, MANIFEST_KEY, StateManifest, Tensor};

/// A copy of a weight file.
pub(crate) struct SplicedFile {
    /// Name of the copy.
    pub(crate) name: String,
    /// The file.
    pub(crate) source: Rc<dyn ByteSource>,
    /// Tensors with other bytes than the file's, and where the file has theirs.
    pub(crate) tensors: Vec<(u64, Tensor)>,
}

impl FileStream {
    /// Creates the copies of `files`, which hold exactly the weights of this digest, for a receipt.
    ///
    /// # Errors
    /// Errors of reading the headers.
    pub(crate) fn spliced(files: Vec<SplicedFile>, weights: Digest) -> Result<Self> {
        let mut stream = Self::summed();
        let sources: Vec<_> = files.iter().map(|file| Rc::clone(&file.source)).collect();
        stream.know(ArtifactDigests {
            weights: Some(weights),
            ..stated_facts(&sources)?
        });
        for mut file in files {
            file.tensors.sort_by_key(|(begin, _)| *begin);
            let (mut segments, mut at) = (Vec::new(), 0);
            for (begin, tensor) in file.tensors {
                segments.push(copied(&file.source, at, begin));
                at = begin + tensor.len();
                segments.push(Segment::Tensor(Box::new(tensor)));
            }
            segments.push(copied(&file.source, at, file.source.len()));
            stream.push(&file.name, segments);
        }
        Ok(stream)
    }
}

/// The bytes of a file from `begin` to `end`.
fn copied(source: &Rc<dyn ByteSource>, begin: u64, end: u64) -> Segment {
    let len = end.saturating_sub(begin);
    let bytes = Bytes::of_source(Rc::clone(source), begin, len);
    Segment::Tensor(Box::new(Tensor::parameter("", "U8", &[len], bytes)))
}

/// Collects the facts that weight files state in addition to their tensors.
fn stated_facts(files: &[Rc<dyn ByteSource>]) -> Result<ArtifactDigests> {
    if !gguf_files(files).is_empty() {
        return gguf_facts(files);
    }
    for file in files {
        let metadata = SafetensorsFile::open(file)?.metadata;
        if let Some(text) = metadata.get(MANIFEST_KEY) {
            let manifest = StateManifest::read(&text, file.name())?;
            return ArtifactDigests::of_manifest(&manifest.identity, &manifest.groups);
        }
    }
    Ok(ArtifactDigests::default())
}
