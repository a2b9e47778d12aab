//! A tensor as it enters a digest: with Hugging Face's name and order of bytes, wherever it is stored (crate/FORMATS.md, "Digests").

use crate::error::Result;
use crate::formats::{ByteSource, Digest, FileTensor, Hasher, SourceSpan, for_each_chunk};
use crate::gpu::transfer::PIECE_BYTES;
use crate::state::{Bytes, PairedRows, Reordering, Tensor, leaf};

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

    /// Describes the tensor `own` of a file, with `shape` there, which has the name `key` and another order in Hugging Face's format. Blocks
    /// cannot be transposed: such a tensor enters the digest as it is in the file.
    pub(super) fn new(key: &str, own: &str, dtype: &str, shape: &[u64], order: Reordering) -> Self {
        match (order, shape) {
            (Reordering::Transposed, [_, _]) if dtype.starts_with("GGML:") => {
                Self::plain(own, dtype, shape.to_vec())
            }
            (Reordering::Transposed, [rows, columns]) => Self {
                order,
                ..Self::plain(key, dtype, vec![*columns, *rows])
            },
            (Reordering::Transposed, _) => Self::plain(key, dtype, shape.to_vec()),
            _ => Self {
                order,
                ..Self::plain(key, dtype, shape.to_vec())
            },
        }
    }

    /// Describes a tensor of a GGUF file.
    pub(super) fn of_gguf(key: &str, tensor: &FileTensor, order: Reordering) -> Self {
        Self::new(key, &tensor.name, &tensor.dtype, &tensor.shape, order)
    }

    /// Describes a tensor of the files of an opened model.
    pub(super) fn of_tensor(tensor: &Tensor) -> Self {
        let order = match tensor.bytes() {
            Bytes::Span(span) => span.order,
            _ => Reordering::Same,
        };
        let mut shape = tensor.shape.clone();
        if order == Reordering::Transposed {
            shape.reverse();
        }
        Self::new(
            &tensor.name,
            tensor.own_name(),
            &tensor.dtype,
            &shape,
            order,
        )
    }

    /// Computes the digest of the tensor from that of its bytes.
    pub(super) fn leaf(&self, payload: Digest) -> Digest {
        leaf(&self.key, &self.dtype, &self.shape, payload)
    }

    /// Starts the checksum of its `bytes` bytes, to be computed while they pass in the order of the file; `None` if they have to be read in
    /// another order.
    pub(super) fn sum(&self, bytes: u64) -> Option<PayloadSum> {
        if self.order == Reordering::Transposed {
            return None;
        }
        let rows = self.shape.first().copied().unwrap_or(1);
        let heads = match self.order.rows(rows) {
            Some(order) if order.head_rows() * (bytes / rows) > PIECE_BYTES as u64 => return None,
            // Both are at most a piece long.
            Some(order) => Some(Heads {
                order,
                row: (bytes / rows) as usize,
                head: Vec::new(),
                sorted: Vec::new(),
            }),
            None => None,
        };
        Some(PayloadSum {
            hasher: Hasher::new(),
            heads: heads.filter(|heads| heads.row > 0),
        })
    }

    /// Returns a source of the bytes `begin..begin + bytes` of `source` in the order of the digest, from the first byte on, if that is another
    /// order.
    pub(super) fn ordered<'a, S: ByteSource + 'a>(
        &self,
        source: S,
        begin: u64,
        bytes: u64,
    ) -> Option<Box<dyn ByteSource + 'a>> {
        self.order.ordered(source, begin, bytes, &self.shape)
    }

    /// Returns the tensor as it enters the digest, from its contents in a file.
    pub(super) fn ordered_tensor(&self, contents: &Tensor) -> Option<Tensor> {
        let bytes = match contents.bytes() {
            Bytes::Span(span) => {
                let span = &span.stored;
                let source = std::rc::Rc::clone(&span.source);
                Bytes::ordered(source, span.begin, span.bytes, self.order)
            }
            Bytes::Encoded(encoded) => Bytes::Encoded(std::rc::Rc::new(encoded.in_order())),
            _ => return None,
        };
        Some(Tensor::parameter(
            &self.key,
            &self.dtype,
            &self.shape,
            bytes,
        ))
    }

    /// Computes the digest of its bytes in a file, which are read once where their order allows it.
    pub(super) fn payload_in(&self, span: &SourceSpan) -> Result<Digest> {
        let SourceSpan {
            source,
            begin,
            bytes,
        } = span;
        let (source, begin, bytes): (&dyn ByteSource, u64, u64) = (source, *begin, *bytes);
        let mut sum = self.sum(bytes).unwrap_or_default();
        let reordered = if self.sum(bytes).is_none() {
            self.ordered(source, begin, bytes)
        } else {
            None
        };
        let (source, begin) = reordered
            .as_deref()
            .map_or((source, begin), |source| (source, 0));
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
}

/// Rows that have other places in the file: those of a head wait until it is whole.
#[derive(Debug)]
struct Heads {
    order: PairedRows,
    /// Number of bytes in a row.
    row: usize,
    /// Bytes of the current head that passed.
    head: Vec<u8>,
    sorted: Vec<u8>,
}

impl PayloadSum {
    /// Adds the next bytes.
    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        let Some(Heads {
            order,
            row,
            head,
            sorted,
        }) = &mut self.heads
        else {
            return self.hasher.update(bytes);
        };
        let whole = order.head_rows() as usize * *row;
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

    /// Returns the checksum of all bytes.
    pub(super) fn finish(self) -> Digest {
        self.hasher.finish()
    }
}
