//! Writes a GGUF file as a stream: its header, and the contents of its tensors from wherever they are.

use super::checksums::TensorSpan;
use super::segment::Segment;
use super::stream::FileStream;
use super::tensor_hasher::TensorHasher;
use crate::error::{Refusal, Result, word};
use crate::families::names::Layout;
use crate::formats::{FileTensor, GgufValue, gguf_header};
use crate::state::ArtifactDigests;

/// A tensor of a GGUF file to be written.
pub(crate) struct GgufOutput {
    /// Name, type and shape in the file.
    pub(crate) record: FileTensor,
    /// Bytes of the tensor.
    pub(crate) contents: Segment,
    /// Hugging Face's name of the weight, and its layout in the file; `None` for a tensor that is no weight of the model, or a second copy of
    /// one.
    pub(crate) weight: Option<(String, Layout)>,
}

impl FileStream {
    /// Adds a GGUF file with these keys and tensors, in their order, and records it for a receipt. The rules are those of [`gguf_header`];
    /// contents whose length differs from their record are `export.tensor.size`.
    pub(crate) fn push_gguf(&mut self, name: &str, metadata: &[(String, GgufValue)], tensors: Vec<GgufOutput>) -> Result<()> {
        let records: Vec<FileTensor> = tensors.iter().map(|tensor| tensor.record.clone()).collect();
        let header = gguf_header(metadata, &records)?;
        let file = self.files.len();
        let mut bytes = header.bytes.len() as u64;
        let mut segments = vec![Segment::Bytes(header.bytes)];
        for (tensor, span) in tensors.into_iter().zip(header.spans) {
            let segment = tensor.contents;
            if segment.len() != span.bytes {
                let refusal = Refusal::new(word!("export.tensor.size")).of("gguf").subject(&tensor.record.name);
                return Err(refusal.expected(format!("{} bytes", span.bytes)).found(segment.len()).into());
            }
            if let (Some((key, layout)), Some(checksums)) = (&tensor.weight, &mut self.checksums) {
                let FileTensor { name, dtype, shape, .. } = &tensor.record;
                let hasher = TensorHasher::new(key, name, dtype, shape, *layout);
                let again = match &segment {
                    _ if hasher.sum(span.bytes).is_some() => None,
                    Segment::Copied(stored) => Some(Segment::Copied(hasher.ordered_span(stored))),
                    Segment::Encoded(tensor) => Some(Segment::Encoded(tensor.in_order())),
                    _ => None,
                };
                checksums.expect(TensorSpan { hasher, file, begin: bytes, end: bytes + span.bytes, state: false, again });
            }
            bytes += span.bytes + span.padding;
            // The padding is less than the alignment.
            segments.extend([segment, Segment::Bytes(vec![0; span.padding as usize])]);
        }
        self.push(name, bytes, segments);
        self.know(ArtifactDigests::of_gguf(metadata));
        Ok(())
    }
}
