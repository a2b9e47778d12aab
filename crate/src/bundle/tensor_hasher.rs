//! A tensor as it enters a digest: with Hugging Face's name and order of bytes, wherever it is stored (crate/FORMATS.md, "Digests").

use super::entry::Entry;
use crate::error::Result;
use crate::families::names::Layout;
use crate::formats::{ByteSource, Digest, FileTensor, Hasher, PairedRows, SourceSpan, Transposed, for_each_chunk};
use crate::gpu::transfer::PIECE_BYTES;
use crate::state::leaf;

/// Name, dtype and shape of a tensor in its digest, and the layout of its bytes in its file.
#[derive(Debug, Clone)]
pub(crate) struct TensorHasher {
    pub(super) key: String,
    pub(super) dtype: String,
    /// Shape in Hugging Face's order.
    pub(super) shape: Vec<u64>,
    layout: Layout,
}

impl TensorHasher {
    /// Describes a tensor that is stored as it enters the digest.
    pub(super) fn plain(key: &str, dtype: &str, shape: Vec<u64>) -> Self {
        Self { key: key.to_string(), dtype: dtype.to_string(), shape, layout: Layout::Same }
    }

    /// Describes the tensor `own` of a file, with `shape` there, which has the name `key` and another layout in Hugging Face's format. Blocks
    /// cannot be transposed: such a tensor enters the digest as it is in the file.
    pub(super) fn new(key: &str, own: &str, dtype: &str, shape: &[u64], layout: Layout) -> Self {
        match (layout, shape) {
            (Layout::Transposed, [_, _]) if dtype.starts_with("GGML:") => Self::plain(own, dtype, shape.to_vec()),
            (Layout::Transposed, [rows, columns]) => Self { layout, ..Self::plain(key, dtype, vec![*columns, *rows]) },
            (Layout::Transposed, _) => Self::plain(key, dtype, shape.to_vec()),
            _ => Self { layout, ..Self::plain(key, dtype, shape.to_vec()) },
        }
    }

    /// Describes a tensor of a GGUF file.
    pub(super) fn of_gguf(key: &str, tensor: &FileTensor, layout: Layout) -> Self {
        Self::new(key, &tensor.name, &tensor.dtype, &tensor.shape, layout)
    }

    /// Describes a tensor of an opened model.
    pub(super) fn of_entry(entry: &Entry) -> Self {
        Self::new(&entry.name, &entry.stored.name, &entry.dtype, &entry.stored.shape, entry.layout)
    }

    /// Computes the digest of the tensor from that of its bytes.
    pub(super) fn leaf(&self, payload: Digest) -> Digest {
        leaf(&self.key, &self.dtype, &self.shape, payload)
    }

    /// Returns the rows of a head, if the rows of its two halves alternate in the file.
    fn head_rows(&self) -> Option<u64> {
        let (Layout::PairedRows(heads), Some(&rows)) = (self.layout, self.shape.first()) else { return None };
        let heads = heads as u64;
        (heads > 0 && rows > 0 && rows.is_multiple_of(2 * heads)).then(|| rows / heads)
    }

    /// Starts the checksum of its `bytes` bytes, to be computed while they pass in the order of the file; `None` if they have to be read in
    /// another order.
    pub(super) fn sum(&self, bytes: u64) -> Option<PayloadSum> {
        let halves = match (self.layout, self.head_rows(), self.shape.first()) {
            (Layout::Transposed, ..) => return None,
            (_, Some(head_rows), Some(&rows)) => {
                let row = bytes / rows;
                if head_rows / 2 * row > PIECE_BYTES as u64 {
                    return None;
                }
                Some(Halves { row, head: head_rows * row, at: 0, second: Vec::new() })
            }
            _ => None,
        };
        Some(PayloadSum { hasher: Hasher::new(), halves: halves.filter(|halves| halves.row > 0) })
    }

    /// Returns a source of the bytes `begin..begin + bytes` of `source` in the order of the digest, from the first byte on, if that is another
    /// order.
    pub(super) fn ordered<'a, S: ByteSource + 'a>(&self, source: S, begin: u64, bytes: u64) -> Option<Box<dyn ByteSource + 'a>> {
        match (self.layout, self.head_rows(), self.shape.as_slice()) {
            (Layout::Transposed, _, &[columns, rows]) if rows > 0 && columns > 0 => {
                Some(Box::new(Transposed { source, begin, rows, columns, width: bytes / (rows * columns) }))
            }
            (_, Some(head_rows), &[rows, ..]) if bytes > 0 => {
                Some(Box::new(PairedRows { source, begin, row: bytes / rows, rows, head_rows }))
            }
            _ => None,
        }
    }

    /// Returns the same for shared bytes.
    pub(super) fn ordered_span(&self, span: &SourceSpan) -> SourceSpan {
        match self.ordered(std::rc::Rc::clone(&span.source), span.begin, span.bytes) {
            Some(source) => SourceSpan { source: source.into(), begin: 0, bytes: span.bytes },
            None => span.clone(),
        }
    }

    /// Computes the digest of its bytes, which are at `begin..end` of `source` and are read once where their order allows it.
    pub(super) fn payload_in(&self, source: &dyn ByteSource, begin: u64, end: u64) -> Result<Digest> {
        let bytes = end.saturating_sub(begin);
        let mut sum = self.sum(bytes).unwrap_or_default();
        let reordered = if self.sum(bytes).is_none() { self.ordered(source, begin, bytes) } else { None };
        let (source, begin) = reordered.as_deref().map_or((source, begin), |source| (source, 0));
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
    halves: Option<Halves>,
}

/// Rows that alternate between the two halves of a head: those of the second half wait until the end of the head.
#[derive(Debug)]
struct Halves {
    /// Number of bytes in a row; the next field is that of a head.
    row: u64,
    head: u64,
    /// Number of bytes of the current head that passed.
    at: u64,
    second: Vec<u8>,
}

impl PayloadSum {
    /// Adds the next bytes.
    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        let Some(halves) = &mut self.halves else { return self.hasher.update(bytes) };
        while !bytes.is_empty() {
            let (row, column) = (halves.at / halves.row, halves.at % halves.row);
            // The count is at most the length of a slice in memory.
            let now = usize::try_from(halves.row - column).map_or(bytes.len(), |left| left.min(bytes.len()));
            let (here, rest) = bytes.split_at(now);
            if row.is_multiple_of(2) {
                self.hasher.update(here);
            } else {
                halves.second.extend_from_slice(here);
            }
            halves.at += now as u64;
            if halves.at == halves.head {
                self.hasher.update(&halves.second);
                halves.second.clear();
                halves.at = 0;
            }
            bytes = rest;
        }
    }

    /// Returns the checksum of all bytes.
    pub(super) fn finish(self) -> Digest {
        self.hasher.finish()
    }
}
