//! Computes checksums of the bytes of a stream: the SHA-256 of each file, and the digest of each tensor.

use std::collections::{BTreeMap, VecDeque};

use super::tensor_hasher::{PayloadSum, TensorHasher};
use crate::formats::{Digest, Encoding, Hasher, count_non_finite};
use crate::state::Tensor;

/// Digests of tensors by name.
pub(super) type Leaves = BTreeMap<String, Digest>;

/// Position of a tensor in a stream.
pub(super) struct TensorSpan {
    pub(super) hasher: TensorHasher,
    /// Index of its file in the stream.
    pub(super) file: usize,
    /// Offset of the first byte in the file; the next field is the end.
    pub(super) begin: u64,
    pub(super) end: u64,
    /// True if it belongs to an optimizer.
    pub(super) state: bool,
    /// The tensor in the order of the digest, if its bytes cannot be hashed while they pass.
    pub(super) again: Option<Tensor>,
}

impl TensorSpan {
    /// Describes a weight whose bytes can be hashed while they pass.
    pub(super) fn new(hasher: TensorHasher, file: usize, begin: u64, end: u64) -> Self {
        Self {
            hasher,
            file,
            begin,
            end,
            state: false,
            again: None,
        }
    }
}

/// Checksums of the bytes so far.
#[derive(Default)]
pub(super) struct Checksums {
    /// Leaves of the complete weights.
    pub(super) weights: Leaves,
    /// Leaves of the complete state tensors.
    pub(super) state: Leaves,
    /// Digests of the complete files.
    pub(super) files: Vec<Digest>,
    /// Hash of the current file.
    file: Hasher,
    /// Number of bytes of the current file so far.
    at: u64,
    /// Tensors that are not complete, in the order of their bytes.
    spans: VecDeque<TensorSpan>,
    payload: Option<PayloadSum>,
    /// Counter of the NaN and infinite values of the current tensor.
    odd: NonFinite,
    /// Weights with such values, and their number.
    pub(super) non_finite: Vec<(String, u64)>,
    /// Tensors that passed and have to be read again.
    pub(super) owed: Vec<TensorSpan>,
}

impl Checksums {
    /// Finds the longest name of the tensors that have not passed yet.
    pub(super) fn longest_name(&self) -> &str {
        let names = self.spans.iter().map(|span| span.hasher.key.as_str());
        names.max_by_key(|name| name.len()).unwrap_or_default()
    }

    /// Registers the position of the tensor that follows those registered so far.
    pub(super) fn expect(&mut self, span: TensorSpan) {
        self.spans.push_back(span);
    }

    /// Adds the next bytes of the file at the index `file`, which has `len` bytes in all. Files without bytes are skipped.
    pub(super) fn take(&mut self, file: usize, bytes: &[u8], len: u64) {
        while self.files.len() < file {
            self.end_file();
        }
        self.file.update(bytes);
        let (begin, end) = (self.at, self.at + bytes.len() as u64);
        while let Some(span) = self.spans.front().filter(|span| span.file == file) {
            let (from, to) = (span.begin.max(begin), span.end.min(end));
            if self.payload.is_none() {
                self.payload = span.hasher.sum(span.end - span.begin);
            }
            if from < to {
                // The range is inside the piece.
                let part = &bytes[(from - begin) as usize..(to - begin) as usize];
                if let Some(payload) = &mut self.payload {
                    payload.update(part);
                }
                self.odd.update(&span.hasher.dtype, part);
            }
            if span.end > end {
                break;
            }
            self.end_tensor();
        }
        self.at = end;
        if end == len {
            self.end_file();
        }
    }

    fn end_tensor(&mut self) {
        let Some(span) = self.spans.pop_front() else {
            return;
        };
        let odd = std::mem::take(&mut self.odd).count;
        if odd > 0 && !span.state {
            self.non_finite.push((span.hasher.key.clone(), odd));
        }
        match self.payload.take() {
            Some(payload) => self.add(&span, payload.finish()),
            None => self.owed.push(span),
        }
    }

    pub(super) fn add(&mut self, span: &TensorSpan, payload: Digest) {
        let leaves = if span.state {
            &mut self.state
        } else {
            &mut self.weights
        };
        leaves.insert(span.hasher.key.clone(), span.hasher.leaf(payload));
    }

    fn end_file(&mut self) {
        self.files.push(std::mem::take(&mut self.file).finish());
        self.at = 0;
    }

    /// The leaves of weights and state to be expected, with placeholders for the digests.
    pub(super) fn planned(&self) -> [Leaves; 2] {
        [false, true].map(|state| {
            let spans = self.spans.iter().filter(|span| span.state == state);
            let leaves = spans.map(|span| (span.hasher.key.clone(), Digest::of(&[])));
            leaves.collect()
        })
    }
}

/// Counts NaN and infinite values of a tensor whose bytes pass in parts, which may end within a value or a block.
#[derive(Default)]
struct NonFinite {
    rest: Vec<u8>,
    count: u64,
}

impl NonFinite {
    fn update(&mut self, dtype: &str, mut bytes: &[u8]) {
        let unit = match dtype {
            "C64" => 8,
            _ => Encoding::of_dtype(dtype).map_or(1, |encoding| encoding.unit().0),
        };
        if !self.rest.is_empty() {
            let (head, tail) = bytes.split_at((unit - self.rest.len()).min(bytes.len()));
            self.rest.extend_from_slice(head);
            bytes = tail;
            if self.rest.len() == unit {
                self.count += count_non_finite(dtype, &self.rest);
                self.rest.clear();
            }
        }
        let (whole, rest) = bytes.split_at(bytes.len() / unit * unit);
        self.count += count_non_finite(dtype, whole);
        self.rest.extend_from_slice(rest);
    }
}
