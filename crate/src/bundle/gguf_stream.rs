//! Writes a GGUF file as a stream: its header, and the contents of its tensors from wherever they are.

use super::checksums::TensorSpan;
use super::segment::Segment;
use super::stream::FileStream;
use super::tensor_hasher::TensorHasher;
use crate::error::{Refusal, Result, word};
use crate::formats::{FileTensor, GgufValue, gguf_header};
use crate::state::{ArtifactDigests, Reordering};

impl FileStream {
    /// Adds a GGUF file with these keys and tensors, in their order, and records it for a receipt. `weight_of` returns Hugging Face's name of a
    /// tensor, and its order in the file; `None` for one that is no weight of the model, or a second copy of one. The rules are those of
    /// [`gguf_header`]; contents whose length differs from their record are `export.tensor.size`.
    pub(crate) fn push_gguf(
        &mut self,
        name: &str,
        metadata: &[(String, GgufValue)],
        tensors: Vec<(FileTensor, Segment)>,
        weight_of: impl Fn(&str) -> Option<(String, Reordering)>,
    ) -> Result<()> {
        let (records, contents): (Vec<FileTensor>, Vec<Segment>) = tensors.into_iter().unzip();
        let header = gguf_header(metadata, &records)?;
        let file = self.files.len();
        let mut bytes = header.bytes.len() as u64;
        let mut segments = vec![Segment::Bytes(header.bytes)];
        for ((record, segment), span) in records.iter().zip(contents).zip(header.spans) {
            if segment.len() != span.bytes {
                let refusal = Refusal::new(word!("export.tensor.size"))
                    .of("gguf")
                    .subject(&record.name);
                return Err(refusal
                    .expected(format!("{} bytes", span.bytes))
                    .found(segment.len())
                    .into());
            }
            if let (Some((key, order)), Some(checksums)) =
                (weight_of(&record.name), &mut self.checksums)
            {
                let FileTensor {
                    name, dtype, shape, ..
                } = record;
                let hasher = TensorHasher::new(&key, name, dtype, shape, order);
                let again = match &segment {
                    _ if hasher.sum(span.bytes).is_some() => None,
                    Segment::Copied(stored) => Some(Segment::Copied(hasher.ordered_span(stored))),
                    Segment::Encoded(tensor) => Some(Segment::Encoded(tensor.in_order())),
                    _ => None,
                };
                checksums.expect(TensorSpan {
                    hasher,
                    file,
                    begin: bytes,
                    end: bytes + span.bytes,
                    state: false,
                    again,
                });
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
