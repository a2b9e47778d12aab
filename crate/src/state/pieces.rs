//! Reads a tensor's values piece by piece, in Hugging Face's layout, so that even a tensor larger than memory can be read.

use std::ops::Range;
use std::rc::Rc;

use super::gathering::Gathering;
use super::merged::Factors;
use super::reordering::Reordering;
use super::tensor::{Bytes, PIECE_ELEMENTS, Tensor};
use super::tensor_manifest::numel;
use crate::error::{Error, Refusal, Result};
use crate::formats::{
    ByteSource, Encoding, FileTensor, MemorySource, SourceSpan, for_each_chunk, reserved,
    too_large, unreadable,
};

/// Stored values of a tensor, in the order of the file.
struct Stored {
    span: SourceSpan,
    name: String,
    encoding: Encoding,
}

impl Stored {
    /// Appends `count` values from the value `first` on.
    fn read(&self, first: u64, count: u64, out: &mut Vec<f32>) -> Result<()> {
        let (unit_bytes, unit) = self.encoding.unit();
        let (bytes, elements) = (unit_bytes as u64, unit as u64);
        let end = self.span.begin.saturating_add(self.span.bytes);
        // The shape may have more values than the file.
        let place = |unit: Option<u64>| {
            unit.and_then(|unit| unit.checked_mul(bytes))
                .and_then(|at| self.span.begin.checked_add(at))
                .filter(|at| *at <= end)
                .ok_or_else(|| Error::from(self.too_large()))
        };
        let last = first.checked_add(count);
        let from = place(Some(first / elements))?;
        let to = place(last.map(|last| last.div_ceil(elements)))?;
        let start = out.len();
        for_each_chunk(&self.span.source, from, to, unit_bytes, |piece| {
            self.encoding.decode(piece, out);
            Ok(())
        })?;
        // These are less than a block, and values that were read.
        out.drain(start..start + (first % elements) as usize);
        out.truncate(start + count as usize);
        Ok(())
    }

    fn too_large(&self) -> Refusal {
        too_large()
            .stage("read")
            .of(self.span.source.name())
            .subject(&self.name)
    }
}

/// Reads a tensor's values in order, one piece at a time. It holds two pieces at most, whatever the tensor's size.
pub struct Pieces {
    stored: Stored,
    /// Places of the values, if the file has them in another order.
    gathering: Option<Gathering>,
    /// Order of the tensor, by which values change.
    order: Reordering,
    elements: u64,
    /// Maximum number of values in a piece.
    limit: u64,
    at: u64,
    non_finite: u64,
    values: Vec<f32>,
    scratch: Vec<f32>,
    factors: Option<Factors>,
}

impl Tensor {
    /// Reads the values, with at most `max_elements` in a piece, and never more than [`PIECE_ELEMENTS`]. The pair of a merged tensor is added.
    ///
    /// # Errors
    /// A dtype without a decoder, `source.too-large`, and errors of reading a pair.
    #[doc(hidden)]
    pub fn pieces(&self, max_elements: usize) -> Result<Pieces> {
        let Some(merged) = self.merged() else {
            return Pieces::new(self, max_elements);
        };
        Ok(Pieces {
            factors: Some(merged.pair.load(merged.base.encoding())?),
            ..Pieces::new(&merged.base, max_elements)?
        })
    }
}

impl Pieces {
    /// Creates the reader of a tensor in a file or in memory.
    fn new(tensor: &Tensor, max_elements: usize) -> Result<Self> {
        let span = match tensor.bytes() {
            Bytes::Host(bytes) => Some(SourceSpan {
                source: Rc::new(MemorySource::new(tensor.name.as_str(), bytes.to_vec())),
                begin: 0,
                bytes: bytes.len() as u64,
            }),
            _ => tensor.span().cloned(),
        };
        let (Some(span), Some(encoding)) = (span, tensor.encoding()) else {
            let file = tensor.stored().map_or("", |span| span.source.name());
            return Err(unreadable(&tensor.dtype, tensor.own_name(), file).into());
        };
        let stored = Stored {
            span,
            name: tensor.own_name().to_string(),
            encoding,
        };
        let (rows, columns) = tensor.shape.split_first().unwrap_or((&1, &[]));
        let row = numel(columns).ok_or_else(|| stored.too_large())?;
        let elements = rows.checked_mul(row).ok_or_else(|| stored.too_large())?;
        let whole = max_elements.clamp(1, PIECE_ELEMENTS);
        // Pieces that begin inside a block would decode it twice.
        let unit = encoding.unit().1;
        let limit = if whole > unit {
            whole / unit * unit
        } else {
            whole
        } as u64;
        Ok(Self {
            stored,
            gathering: tensor.order().gathering([*rows, row], false),
            order: tensor.order(),
            elements,
            limit,
            at: 0,
            non_finite: 0,
            values: Vec::new(),
            scratch: Vec::new(),
            factors: None,
        })
    }

    /// Takes the values of a matrix [in, out] in the order of its file, which has [out, in].
    #[must_use]
    pub(crate) fn in_file_order(self) -> Self {
        Self {
            gathering: None,
            ..self
        }
    }

    /// Sums of the squares of all rounding errors of the additions in f32 so far, and of the products that were added.
    pub(super) fn sum_squares(&self) -> [f64; 2] {
        self.factors
            .as_ref()
            .map_or([0.0; 2], |factors| factors.squares)
    }

    /// Skips to the value `first`.
    #[must_use]
    pub(crate) fn starting_at(mut self, first: u64) -> Self {
        self.at = first.min(self.elements);
        self
    }

    /// Number of values of the tensor.
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// Number of NaN and infinite values among the pieces returned so far.
    pub fn non_finite(&self) -> u64 {
        self.non_finite
    }

    /// Reads the next piece and returns it with the index of its first value; `None` after the last. Pieces join without gaps.
    ///
    /// # Errors
    /// Errors of reading, `source.too-large` if the shape has more values than the file, `export.overflow` if a merged value exceeds its dtype.
    pub fn next_piece(&mut self) -> Result<Option<(u64, &[f32])>> {
        let left = self.elements - self.at;
        if left == 0 {
            return Ok(None);
        }
        let at = self.at;
        self.values.clear();
        let most = left.min(self.limit);
        match self.gathering {
            None => self.stored.read(at, most, &mut self.values)?,
            Some(gathering) => self.gather(&gathering, gathering.part(at, most))?,
        }
        self.order.out_of_file(&mut self.values);
        if let Some(factors) = &mut self.factors {
            factors
                .add(at, &mut self.values)
                .map_err(|error| error.in_file(self.stored.span.source.name()))?;
        }
        self.at += self.values.len() as u64;
        let odd = self.values.iter().filter(|value| !value.is_finite());
        self.non_finite += odd.count() as u64;
        Ok(Some((at, &self.values)))
    }

    /// The piece that was returned last; empty before the first.
    pub(crate) fn values(&self) -> &[f32] {
        &self.values
    }

    /// Reads all values at once, if they fit into memory.
    pub(crate) fn collect(mut self) -> Result<Vec<f32>> {
        let count = self.elements;
        // 2^31 values are 8 GiB of f32.
        let room = Some(count).filter(|count| *count <= 1 << 31);
        let mut values = room.and_then(reserved).ok_or_else(|| {
            let refusal = self.stored.too_large();
            refusal.found(format!("{count} values"))
        })?;
        while let Some((_, piece)) = self.next_piece()? {
            values.extend_from_slice(piece);
        }
        Ok(values)
    }

    /// Reads a part whose values have other places in the file.
    fn gather(&mut self, gathering: &Gathering, part: Range<u64>) -> Result<()> {
        // A piece is in memory.
        self.values.resize((part.end - part.start) as usize, 0.0);
        for run in gathering.runs(&part, self.limit) {
            self.scratch.clear();
            let count = run.end - run.start;
            self.stored.read(run.start, count, &mut self.scratch)?;
            gathering.place(&part, run.start, &self.scratch, &mut self.values);
        }
        Ok(())
    }
}

/// Reads all values of a tensor of a GGUF file, row-major, in the order of the file.
///
/// # Errors
/// `gguf.tensor.type-unknown` or `.type-unsupported` without a decoder, `source.too-large`, and errors of reading.
pub fn dequantise(
    source: &(impl ByteSource + Clone + 'static),
    record: &FileTensor,
) -> Result<Vec<f32>> {
    let source: Rc<dyn ByteSource> = Rc::new(source.clone());
    let name = record.name.clone();
    let tensor = Tensor::of_file(name, record, Reordering::Same, &source)?;
    tensor.pieces(PIECE_ELEMENTS)?.collect()
}
