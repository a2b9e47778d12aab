//! Writes a GGUF file as a stream: its header, and the contents of its tensors from wherever they are.

use super::checksums::TensorSpan;
use super::refusals::refused;
use super::stream::{FileStream, Segment};
use super::tensor_hasher::TensorHasher;
use crate::error::{Result, word};
use crate::formats::{FileTensor, GgufValue, gguf_header};
use crate::state::{ArtifactDigests, Reordering, Tensor};

impl FileStream {
    /// Adds a GGUF file with these keys and tensors, in their order, and records it for a receipt. `weight_of` returns Hugging Face's name of a
    /// tensor, and its order in the file; `None` for one that is no weight of the model, or a second copy of one. The rules are those of
    /// [`gguf_header`]; contents whose length differs from their record are `export.tensor.size`.
    pub(crate) fn push_gguf(
        &mut self,
        name: &str,
        metadata: &[(String, GgufValue)],
        tensors: Vec<Tensor>,
        weight_of: impl Fn(&str) -> Option<(String, Reordering)>,
    ) -> Result<()> {
        let record = |tensor: &Tensor| FileTensor::new(&tensor.name, &tensor.dtype, &tensor.shape);
        let records: Vec<FileTensor> = tensors.iter().map(record).collect();
        let header = gguf_header(metadata, &records)?;
        let file = self.files.len();
        let mut begin = header.bytes.len() as u64;
        let mut segments = vec![Segment::Known(header.bytes)];
        for ((tensor, record), span) in tensors.into_iter().zip(records).zip(header.spans) {
            if tensor.len() != span.bytes {
                return Err(refused(word!("export.tensor.size"), "gguf", &tensor.name)
                    .expected(format!("{} bytes", span.bytes))
                    .found(tensor.len())
                    .into());
            }
            let end = begin + span.bytes;
            if let (Some((key, order)), Some(checksums)) =
                (weight_of(&tensor.name), &mut self.checksums)
            {
                let hasher = TensorHasher::of_gguf(&key, &record, order);
                let again = match hasher.sum(span.bytes) {
                    Some(_) => None,
                    None => hasher.ordered_tensor(&tensor),
                };
                checksums.expect(TensorSpan {
                    again,
                    ..TensorSpan::new(hasher, file, begin, end)
                });
            }
            begin = end + span.padding;
            // The padding is less than the alignment.
            segments.extend([
                Segment::Tensor(Box::new(tensor)),
                Segment::Known(vec![0; span.padding as usize]),
            ]);
        }
        self.push(name, segments);
        self.know(ArtifactDigests::of_gguf(metadata));
        Ok(())
    }
}
