//! Files that do not exist yet: their names and sizes are known, their bytes are read from the device one tensor at a time.

use std::collections::{BTreeMap, VecDeque};

use burn::tensor::{DType, Tensor};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::safetensors_header;
use crate::error::Result;
use crate::kernels;

/// Longest chunk that [`FileStream::next_chunk`] gives.
const CHUNK_BYTES: usize = 8 << 20;

/// Name and size of a file of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileInfo {
    /// File name, without a path.
    pub name: String,
    /// Size.
    pub bytes: u64,
}

/// Consecutive bytes of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Index into [`FileStream::files`].
    pub file: usize,
    /// At most 8 MiB.
    pub bytes: Vec<u8>,
}

/// A tensor to be written: shape as files have it, contents as a flat handle (F32, packed BF16, or whole bytes for other types).
#[derive(Debug, Clone)]
pub struct StreamTensor {
    /// State-dict name.
    pub name: String,
    /// Row-major.
    pub shape: Vec<usize>,
    /// Where the values are.
    pub values: StreamValues,
}

/// Where a tensor's values are.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "a handle for each tensor of a model: few, and short-lived")]
pub enum StreamValues {
    /// On the device, flattened.
    Device(Tensor<1>),
    /// One U64 on the host.
    U64(u64),
}

impl StreamTensor {
    fn dtype(&self) -> &'static str {
        match &self.values {
            StreamValues::Device(tensor) if tensor.dtype() == DType::BF16 => "BF16",
            StreamValues::Device(_) => "F32",
            StreamValues::U64(_) => "U64",
        }
    }
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a handle for each tensor of a model: few, and short-lived")]
enum Segment {
    Bytes(Vec<u8>),
    Device(Tensor<1>),
    /// JSON text in which [`digest_of`] stands for the digests of earlier files.
    Sealed(String),
}

/// Files whose bytes come chunk by chunk. Tensors are kept as handles: a step taken meanwhile does not change what is written.
#[derive(Debug, Default)]
pub struct FileStream {
    files: Vec<FileInfo>,
    digests: Vec<Sha256>,
    segments: VecDeque<(usize, Segment)>,
    rest: VecDeque<Chunk>,
}

/// Stands in a sealed document for the SHA-256 of file `index`, which is not known before it was written. 64 characters, as the digest.
pub fn digest_of(index: usize) -> String {
    format!("{:@>64}", format!("@{index}"))
}

impl FileStream {
    /// An empty stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// The files in the order in which their bytes come.
    pub fn files(&self) -> &[FileInfo] {
        &self.files
    }

    fn push(&mut self, name: &str, bytes: u64, segments: Vec<Segment>) -> usize {
        let index = self.files.len();
        self.files.push(FileInfo { name: name.to_string(), bytes });
        self.digests.push(Sha256::new());
        self.segments.extend(segments.into_iter().map(|segment| (index, segment)));
        index
    }

    /// Adds a file of known bytes; returns its index.
    pub fn push_bytes(&mut self, name: &str, bytes: Vec<u8>) -> usize {
        self.push(name, bytes.len() as u64, vec![Segment::Bytes(bytes)])
    }

    /// Adds a JSON document in which [`digest_of`] stands for digests of files added before.
    pub fn push_sealed(&mut self, name: &str, text: String) -> usize {
        self.push(name, text.len() as u64, vec![Segment::Sealed(text)])
    }

    /// Adds a safetensors file of `tensors` with `metadata`; returns its index.
    pub fn push_safetensors(&mut self, name: &str, mut tensors: Vec<StreamTensor>, metadata: &BTreeMap<String, String>) -> Result<usize> {
        tensors.sort_by(|a, b| a.name.cmp(&b.name));
        let entries: Vec<_> = tensors.iter().map(|t| (t.name.clone(), t.dtype(), t.shape.clone())).collect();
        let (header, spans) = safetensors_header(&entries, metadata)?;
        let bytes = header.len() as u64 + spans.last().map_or(0, |span| span.1);
        let mut segments = vec![Segment::Bytes(header)];
        segments.extend(tensors.into_iter().map(|tensor| match tensor.values {
            StreamValues::Device(values) => Segment::Device(values),
            StreamValues::U64(value) => Segment::Bytes(value.to_le_bytes().to_vec()),
        }));
        Ok(self.push(name, bytes, segments))
    }

    /// The next bytes, or `None` when every file is complete.
    pub async fn next_chunk(&mut self) -> Result<Option<Chunk>> {
        while self.rest.is_empty() {
            let Some((file, segment)) = self.segments.pop_front() else { return Ok(None) };
            let bytes = match segment {
                Segment::Bytes(bytes) => bytes,
                Segment::Device(tensor) => kernels::read_data(tensor).await?.bytes().to_vec(),
                Segment::Sealed(text) => self.seal(text).into_bytes(),
            };
            self.digests[file].update(&bytes);
            self.rest.extend(bytes.chunks(CHUNK_BYTES).map(|chunk| Chunk { file, bytes: chunk.to_vec() }));
        }
        Ok(self.rest.pop_front())
    }

    fn seal(&self, mut text: String) -> String {
        for (index, digest) in self.digests.iter().enumerate() {
            let hex: String = digest.clone().finalize().iter().map(|byte| format!("{byte:02x}")).collect();
            text = text.replace(&digest_of(index), &hex);
        }
        text
    }
}
