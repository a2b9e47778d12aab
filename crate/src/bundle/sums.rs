//! Sums of what a stream gives: SHA-256 of each file, the digest of each tensor of its safetensors files, and the receipt made of them.

use std::collections::{BTreeMap, VecDeque};

use super::conversion::Conversion;
use super::counted::{Counted, PayloadSum};
use super::decode::{Encoding, count_non_finite};
use super::fit::refuse_non_finite_as;
use super::gguf::GgmlType;
use super::receipt::{MAX_COUNT, ModelIoArtifactReceipt, Written};
use super::sha256::{Digest, Hasher};
use super::stream::{FileInfo, FileStream, Segment};
use super::written::Known;
use crate::error::{Error, Fault, Result, word};

/// Where a tensor of a stream lies.
pub(super) struct TensorSpan {
    pub(super) counted: Counted,
    /// Position of its file in the stream.
    pub(super) file: usize,
    /// Offsets in the file.
    pub(super) begin: u64,
    pub(super) end: u64,
    /// Whether it belongs to an optimizer.
    pub(super) state: bool,
    /// Its bytes in the order in which they are counted, where they cannot be summed while they pass by.
    pub(super) again: Option<Segment>,
}

/// Sums of the bytes given so far.
#[derive(Default)]
pub(super) struct Sums {
    /// Leaves of the weights that are complete.
    pub(super) weights: BTreeMap<String, Digest>,
    /// Leaves of the state tensors that are complete.
    pub(super) state: BTreeMap<String, Digest>,
    /// Of the files that are complete.
    pub(super) files: Vec<Digest>,
    /// Of the file whose bytes come now.
    file: Hasher,
    /// Bytes given of it.
    at: u64,
    /// Tensors that are not complete, in the order of their bytes.
    spans: VecDeque<TensorSpan>,
    payload: Option<PayloadSum>,
    /// NaN and infinite values of that tensor.
    odd: NonFinite,
    /// Weights with such values, and how many.
    pub(super) non_finite: Vec<(String, u64)>,
    /// Tensors that passed by and have to be read again.
    owed: Vec<TensorSpan>,
}

impl Sums {
    /// Tells the place of the tensor that comes after those told so far.
    pub(super) fn expect(&mut self, span: TensorSpan) {
        self.spans.push_back(span);
    }

    /// Takes the next bytes of the file at the position `file`, which has `len` bytes in all. Files without bytes are passed over.
    pub(super) fn take(&mut self, file: usize, bytes: &[u8], len: u64) {
        while self.files.len() < file {
            self.end_file();
        }
        self.file.update(bytes);
        let (begin, end) = (self.at, self.at + bytes.len() as u64);
        while let Some(span) = self.spans.front().filter(|span| span.file == file) {
            let (from, to) = (span.begin.max(begin), span.end.min(end));
            self.payload = self.payload.take().or_else(|| span.counted.sum(span.end - span.begin));
            if from < to {
                // Inside the piece.
                let part = &bytes[(from - begin) as usize..(to - begin) as usize];
                self.payload.iter_mut().for_each(|payload| payload.update(part));
                self.odd.update(&span.counted.dtype, part);
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
        let Some(span) = self.spans.pop_front() else { return };
        let odd = std::mem::take(&mut self.odd).count;
        if odd > 0 && !span.state {
            self.non_finite.push((span.counted.key.clone(), odd));
        }
        match self.payload.take() {
            Some(payload) => self.add(&span, payload.finish()),
            None => self.owed.push(span),
        }
    }

    fn add(&mut self, span: &TensorSpan, payload: Digest) {
        let leaves = if span.state { &mut self.state } else { &mut self.weights };
        leaves.insert(span.counted.key.clone(), span.counted.leaf(payload));
    }

    fn end_file(&mut self) {
        self.files.push(std::mem::take(&mut self.file).finish());
        self.at = 0;
    }
}

impl FileStream {
    /// An empty stream that sums what it gives, for a receipt.
    pub fn summed() -> Self {
        let mut stream = Self::default();
        stream.sums = Some(Sums::default());
        stream
    }

    /// Adds the receipt as the last file, `draft` with the sums of all files before it. Its size is that of the longest receipt that it may
    /// become. [`Self::know`] comes before.
    pub(crate) fn push_receipt(&mut self, name: &str, draft: ModelIoArtifactReceipt) -> Result<()> {
        let planned: Vec<Conversion> = self.planned_conversions();
        let zeros = Digest::of(&[]);
        let written: Vec<Written<'_>> = self.files.iter().map(|file| (file.name.as_str(), file.bytes, zeros)).collect();
        let sums = self.sums.as_ref().ok_or_else(unsummed)?;
        let longest = draft.completed(&written, sums.planned(), planned, &self.known)?;
        let bytes = longest.to_text()?.len() as u64;
        self.receipt = Some(draft);
        self.push(name, bytes, vec![Segment::Receipt(bytes)]);
        Ok(())
    }

    /// The receipt, once all files are given; `None` before, and for a stream without one.
    pub fn receipt(&self) -> Option<&ModelIoArtifactReceipt> {
        self.receipt.as_ref().filter(|_| self.segments.is_empty())
    }

    /// Refuses weights with NaN or infinite values when all of them have passed by, unless they are allowed: before the last file, the receipt.
    pub(crate) fn allow_non_finite(mut self, allow: bool) -> Self {
        self.finite = !allow;
        self
    }

    /// The weights given so far that have NaN or infinite values, and how many.
    pub fn non_finite(&self) -> &[(String, u64)] {
        self.sums.as_ref().map_or(&[], |sums| &sums.non_finite)
    }

    /// The conversions that will be, each with the longest numbers.
    fn planned_conversions(&self) -> Vec<Conversion> {
        let encoded = self.segments.iter().filter_map(|(_, segment)| match segment {
            Segment::Encoded(tensor) => tensor.conversion(),
            _ => None,
        });
        encoded
            .map(|one| Conversion {
                max_abs_error: -f64::MIN_POSITIVE,
                non_finite: MAX_COUNT,
                survival: one.survival.map(|_| -f64::MIN_POSITIVE),
                ..one
            })
            .collect()
    }

    /// Writes what depends on the sums of the bytes before it, if it comes next.
    pub(super) fn fill_in(&mut self) -> Result<()> {
        let bytes = match self.segments.front() {
            Some((_, Segment::Late(len, write))) => {
                let bytes = write(self.sums.as_ref().ok_or_else(unsummed)?)?;
                if bytes.len() as u64 != *len {
                    return Err(Error::InvalidConfig(vec![Fault::new("stream", format!("{len} bytes"), bytes.len())]));
                }
                bytes
            }
            Some((_, Segment::Receipt(len))) => {
                if self.finite {
                    refuse_non_finite_as(word!("tensor.non-finite"), self.non_finite())?;
                }
                let receipt = self.complete_receipt()?.ok_or_else(unsummed)?;
                let text = receipt.to_text()?;
                self.receipt = Some(receipt);
                padded(text, *len)?
            }
            _ => return Ok(()),
        };
        if let Some((_, segment)) = self.segments.front_mut() {
            *segment = Segment::Bytes(bytes);
        }
        Ok(())
    }

    /// Takes the sums of bytes that were given.
    pub(super) fn count(&mut self, file: usize, bytes: &[u8]) {
        let len = self.files.get(file).map_or(0, |file| file.bytes);
        if let Some(sums) = &mut self.sums {
            sums.take(file, bytes, len);
        }
    }

    /// Tells what is known of the artifact before its tensors are written.
    pub(crate) fn know(&mut self, known: Known) {
        self.known = known;
    }

    /// Reads the tensors again whose bytes are counted in another order than they passed by in.
    pub(super) async fn settle(&mut self) -> Result<()> {
        let Some(sums) = &mut self.sums else { return Ok(()) };
        for mut span in std::mem::take(&mut sums.owed) {
            if let Some(again) = &mut span.again {
                let payload = again.digest().await?;
                sums.add(&span, payload);
            }
        }
        Ok(())
    }

    /// The receipt with the sums of all files that are complete.
    fn complete_receipt(&self) -> Result<Option<ModelIoArtifactReceipt>> {
        let (Some(draft), Some(sums)) = (&self.receipt, &self.sums) else { return Ok(None) };
        let sum = |at: usize, file: &FileInfo| match (sums.files.get(at), file.bytes) {
            (None, 0) => Some(Digest::of(&[])),
            (sum, _) => sum.copied(),
        };
        // Without the receipt itself.
        let complete = self.files.iter().enumerate().filter_map(|(at, file)| Some((file.name.as_str(), file.bytes, sum(at, file)?)));
        let written: Vec<Written<'_>> = complete.collect();
        draft.completed(&written, [&sums.weights, &sums.state].map(Clone::clone), self.conversions.clone(), &self.known).map(Some)
    }
}

impl Sums {
    /// Leaves as they will be, with other sums.
    fn planned(&self) -> [BTreeMap<String, Digest>; 2] {
        [false, true].map(|state| {
            let spans = self.spans.iter().filter(|span| span.state == state);
            spans.map(|span| (span.counted.key.clone(), Digest::of(&[]))).collect()
        })
    }
}

/// Counts NaN and infinite values of a tensor whose bytes pass by in parts, which may end within a value or a block.
#[derive(Default)]
struct NonFinite {
    rest: Vec<u8>,
    count: u64,
}

impl NonFinite {
    fn update(&mut self, dtype: &str, mut bytes: &[u8]) {
        let unit = match dtype {
            "F64" | "C64" => 8,
            "F32" => 4,
            "F16" | "BF16" => 2,
            _ => GgmlType::of_dtype(dtype).and_then(Encoding::of_ggml).map_or(1, |encoding| encoding.unit().0),
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

/// The text with as many spaces before its last line end as `len` asks for.
fn padded(text: String, len: u64) -> Result<Vec<u8>> {
    let mut bytes = text.into_bytes();
    let missing = usize::try_from(len).ok().and_then(|len| len.checked_sub(bytes.len()));
    let too_long = || Error::InvalidConfig(vec![Fault::new("receipt", format!("at most {len} bytes"), bytes.len())]);
    let missing = missing.ok_or_else(too_long)?;
    bytes.pop();
    bytes.resize(bytes.len() + missing, b' ');
    bytes.push(b'\n');
    Ok(bytes)
}

fn unsummed() -> Error {
    Error::InvalidConfig(vec![Fault::new("stream", "one that sums what it gives", "none")])
}
