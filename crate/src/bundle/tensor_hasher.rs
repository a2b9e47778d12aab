//! A tensor as it enters a digest: with Hugging Face's name and order of bytes, wherever it is stored (crate/FORMATS.md, "Digests").

use std::rc::Rc;

use crate::error::Result;
use crate::formats::{ByteSource, Digest, FileTensor, Hasher, SourceSpan, for_each_chunk};
use crate::gpu::transfer::PIECE_BYTES;
use crate::state::{Bytes, Reordering, RowOrder, Tensor, leaf, less_one};

/// Name, dtype and shape of a tensor in its digest, and the order of its elements in its file.
#[derive(Debug, Clone)]
pub(crate) struct TensorHasher {
    pub(super) key: String,
    pub(super) dtype: String,
    /// Shape in Hugging Face's order.
    pub(super) shape: Vec<u64>,
    order: Reordering,
}

impl TensorHasher {
    /// Describes a tensor that is stored as it enters the digest.
    pub(super) fn plain(key: &str, dtype: &str, shape: Vec<u64>) -> Self {
        Self {
            key: key.to_string(),
            dtype: dtype.to_string(),
            shape,
            order: Reordering::Same,
        }
    }

    /// Describes a tensor of a GGUF file, which has the name `key` and another order in Hugging Face's format. Blocks cannot be transposed: such
    /// a tensor enters the digest as it is in the file.
    pub(super) fn of_gguf(key: &str, tensor: &FileTensor, order: Reordering) -> Self {
        let FileTensor {
            name, dtype, shape, ..
        } = tensor;
        let (key, order, shape) = match (order, shape.as_slice()) {
            (order, [_, _]) if order.moves_columns() && dtype.starts_with("GGML:") => {
                (name.as_str(), Reordering::Same, shape.clone())
            }
            (Reordering::Transposed, shape) if shape.len() != 2 => {
                (key, Reordering::Same, shape.to_vec())
            }
            _ => (key, order, order.shape_of_file(shape)),
        };
        Self {
            order,
            ..Self::plain(key, dtype, shape)
        }
    }

    /// Describes a tensor of the files of an opened model.
    pub(super) fn of_tensor(tensor: &Tensor) -> Self {
        let order = match tensor.bytes() {
            Bytes::Span(span) => span.order,
            _ => Reordering::Same,
        };
        let mut record = FileTensor::new(tensor.own_name(), &tensor.dtype, &tensor.shape);
        record.shape = order.shape_in_file(&record.shape);
        Self::of_gguf(&tensor.name, &record, order)
    }

    /// Computes the digest of the tensor from that of its bytes.
    pub(super) fn leaf(&self, payload: Digest) -> Digest {
        leaf(&self.key, &self.dtype, &self.shape, payload)
    }

    /// Starts the checksum of its `bytes` bytes, to be computed while they pass in the order of the file; `None` if they have to be read in
    /// another order.
    pub(super) fn sum(&self, bytes: u64) -> Option<PayloadSum> {
        if self.order.moves_columns() || matches!(self.order, Reordering::Rates(_)) {
            return None;
        }
        let rows = self.shape.first().copied().unwrap_or(1);
        let order = self.order.rows(rows);
        let row = order.map_or(0, |_| bytes / rows);
        if order.is_some_and(|order| order.run() * row > PIECE_BYTES as u64) {
            return None;
        }
        let heads = order.filter(|_| row > 0).map(|order| Heads {
            order,
            // At most a piece long, as is a head.
            row: row as usize,
            head: Vec::new(),
            sorted: Vec::new(),
        });
        Some(PayloadSum {
            hasher: Hasher::new(),
            heads,
            plus_one: (self.order == Reordering::PlusOne).then(Vec::new),
        })
    }

    /// Puts the contents of the tensor in a file into the order of the digest; `None` if they are in neither a file nor an encoding.
    pub(super) fn ordered_tensor(&self, contents: &Tensor) -> Option<Tensor> {
        let bytes = match contents.bytes() {
            Bytes::Span(span) => {
                let span = &span.stored;
                Bytes::ordered(Rc::clone(&span.source), span.begin, span.bytes, self.order)
            }
            Bytes::Encoded(encoded) => Bytes::Encoded(Rc::new(encoded.in_order())),
            _ => return None,
        };
        let (key, dtype, shape) = (&self.key, &self.dtype, &self.shape);
        Some(Tensor::parameter(key, dtype, shape, bytes))
    }

    /// Computes the digest of the tensor in a file.
    pub(super) fn leaf_in(&self, span: &SourceSpan) -> Result<Digest> {
        Ok(self.leaf(self.payload_in(span)?))
    }

    /// Computes the digest of its bytes in a file, which are read once where their order allows it.
    pub(super) fn payload_in(&self, span: &SourceSpan) -> Result<Digest> {
        let (source, bytes) = (&span.source, span.bytes);
        let in_passing = self.sum(bytes);
        let ordered = match in_passing {
            Some(_) => None,
            None => self.order.ordered(source, span.begin, bytes, &self.shape),
        };
        let (source, begin): (&dyn ByteSource, u64) = match &ordered {
            Some(ordered) => (ordered, 0),
            None => (source, span.begin),
        };
        let mut sum = in_passing.unwrap_or_default();
        for_each_chunk(source, begin, begin + bytes, 1, |piece| {
            sum.update(piece);
            Ok(())
        })?;
        Ok(sum.finish())
    }
}

/// Checksum of a tensor's bytes in Hugging Face's order, which pass in the order of a file.
#[derive(Debug, Default)]
pub(super) struct PayloadSum {
    hasher: Hasher,
    heads: Option<Heads>,
    /// Bytes of a value that has not passed whole, if the file has 1 added to each value of F32.
    plus_one: Option<Vec<u8>>,
}

/// Rows that have other places in the file: those of a head wait until it is whole.
#[derive(Debug)]
struct Heads {
    order: RowOrder,
    /// Number of bytes in a row.
    row: usize,
    /// Bytes of the current head that passed.
    head: Vec<u8>,
    sorted: Vec<u8>,
}

impl PayloadSum {
    /// Adds the next bytes.
    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        if let Some(waiting) = &mut self.plus_one {
            waiting.extend_from_slice(bytes);
            let rest = waiting.split_off(waiting.len() / 4 * 4);
            let mut whole = std::mem::replace(waiting, rest);
            less_one(&mut whole);
            return self.hasher.update(&whole);
        }
        let Some(Heads {
            order,
            row,
            head,
            sorted,
        }) = &mut self.heads
        else {
            return self.hasher.update(bytes);
        };
        let whole = order.run() as usize * *row;
        while !bytes.is_empty() {
            let (here, rest) = bytes.split_at((whole - head.len()).min(bytes.len()));
            head.extend_from_slice(here);
            if head.len() == whole {
                order.sort(head, *row, sorted);
                self.hasher.update(sorted);
                head.clear();
                sorted.clear();
            }
            bytes = rest;
        }
    }

    /// The checksum of all bytes.
    pub(super) fn finish(self) -> Digest {
        self.hasher.finish()
    }
}
