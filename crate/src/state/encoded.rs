//! Values that are written in another type or order than they are stored in: read in pieces, put into the file's order, and encoded.

use std::ops::Range;
use std::rc::Rc;

use super::conversion::{Conversion, Measure};
use super::gathering::Gathering;
use super::reordering::Reordering;
use super::tensor::{Bytes, Encoded, PIECE_ELEMENTS, Tensor};
use crate::error::Result;
use crate::formats::{Encoder, Encoding, TensorType};
use crate::gpu::transfer::{PIECE_BYTES, RUN_BYTES, read_parts};

/// Maximum number of values that are read at once.
const RUN: u64 = (RUN_BYTES / 4) as u64;

/// Maximum number of values whose order is changed at once. A transposed matrix is read once for each such piece, so it is larger.
const GATHERED: u64 = (PIECE_BYTES / 4) as u64;

impl Encoded {
    /// Describes the values of a tensor in this order, as `to`.
    pub(crate) fn new(values: Tensor, order: Reordering, to: TensorType) -> Self {
        Self {
            values,
            order,
            to,
            factor: 1.0,
        }
    }

    /// Describes the values of a merged tensor as they are, in the tensor's own dtype.
    pub(super) fn same(values: Tensor) -> Self {
        let to = values
            .ggml_type()
            .and_then(TensorType::of_ggml)
            .unwrap_or(TensorType::F32);
        Self::new(values, Reordering::Same, to)
    }

    /// Describes the same values in Hugging Face's order.
    pub(crate) fn in_order(&self) -> Self {
        Self {
            order: Reordering::Same,
            ..self.clone()
        }
    }

    fn elements(&self) -> u64 {
        self.values.shape.iter().product()
    }

    /// Number of bytes in the file.
    pub(super) fn bytes(&self) -> u64 {
        let (elements, bytes) = self.to.block();
        self.elements() / elements * bytes
    }

    /// Begins the measurement of the errors of the type for a tensor `name` of a file, if it changes or rounds sums.
    pub(crate) fn measure(&self, name: &str) -> Option<Measure> {
        let (from, merged) = (&self.values.dtype, self.is_merged());
        (*from != self.to.ggml().dtype() || merged)
            .then(|| Measure::new(name, from, self.to, merged))
    }

    /// True if the values are the exact sums of a base and an adapter's product.
    fn is_merged(&self) -> bool {
        let merged = self.values.merged();
        merged.is_some_and(|merged| merged.pair.exact)
    }
}

/// Reads the bytes of encoded values, one after another. It holds a few pieces at most, whatever the tensor's size.
pub(crate) struct EncodedReader {
    name: String,
    encoded: Rc<Encoded>,
    values: Tensor,
    /// Places of the values in the file, if they are others.
    gathering: Option<Gathering>,
    /// Order of the file, by which values change; that of Hugging Face if they are in it already.
    order: Reordering,
    encoder: Encoder,
    /// Measurement of the errors of the type, if it changes or rounds sums.
    measure: Option<Measure>,
    summed: Summed,
    /// Number of values that were read, in the order of the file.
    at: u64,
    /// Encoded bytes that were not taken yet.
    ready: Vec<u8>,
}

/// Sums of a base's values and an adapter's product that were read; a sum that is read twice counts twice.
#[derive(Debug, Default)]
struct Summed {
    values: u64,
    /// Sums of the squares of the rounding errors of adding them in f32, and of the products that were added.
    squares: [f64; 2],
}

impl EncodedReader {
    /// Creates the reader of the tensor `name` of a file.
    pub(super) fn new(name: &str, encoded: &Rc<Encoded>) -> Self {
        let mut values = encoded.values.clone();
        let (mut gathering, mut order) = (None, Reordering::Same);
        // The values may be in the order of the file already.
        if values.lies_as(encoded.order) {
            values = values.in_stored_order();
        } else {
            let shape = &encoded.values.shape;
            let rows = shape.first().copied().unwrap_or(1);
            let width = shape.iter().skip(1).product();
            order = encoded.order.fitting(shape);
            gathering = order.gathering([rows, width], true);
        }
        Self {
            name: name.to_string(),
            values,
            gathering,
            order,
            encoder: Encoder::new(encoded.to),
            measure: encoded.measure(name),
            summed: Summed::default(),
            at: 0,
            ready: Vec::new(),
            encoded: Rc::clone(encoded),
        }
    }

    /// Errors of the conversion so far; `None` if the type stays and nothing was merged into the tensor.
    pub(crate) fn conversion(&self) -> Option<Conversion> {
        self.measure.as_ref().map(Measure::conversion)
    }

    /// Computes the next `count` bytes of the file; fewer at the end. If the type cannot hold a value, the rest of the tensor is read to count
    /// such values, and the tensor is refused before any of these bytes are returned.
    pub(crate) async fn take(&mut self, count: usize) -> Result<Vec<u8>> {
        while (self.ready.len() < count || self.encoder.refuses())
            && self.at < self.encoded.elements()
        {
            self.advance().await?;
            if self.encoder.refuses() {
                self.ready.clear();
            }
        }
        let rest = self.ready.split_off(count.min(self.ready.len()));
        Ok(std::mem::replace(&mut self.ready, rest))
    }

    /// Reads the next values in the order of the file and encodes whole blocks. At the end it refuses values that the type cannot hold.
    async fn advance(&mut self) -> Result<()> {
        let left = self.encoded.elements() - self.at;
        let mut next = match self.gathering {
            Some(gathering) => self.gather(&gathering, left).await?,
            None if self.values.on_device().is_some() => {
                let span = self.at..self.at + left.min(RUN);
                self.read(std::slice::from_ref(&span)).await?
            }
            None => self.values_from(self.at, PIECE_ELEMENTS)?,
        };
        self.at += next.len() as u64;
        if self.encoded.factor != 1.0 {
            let factor = self.encoded.factor;
            next.iter_mut().for_each(|value| *value *= factor);
        }
        self.order.into_file(&mut next);
        let encoded = self.ready.len();
        self.encoder.push(&next, &mut self.ready);
        if let Some(measure) = &mut self.measure {
            measure.compare(next, &self.ready[encoded..]);
        }
        if self.at < self.encoded.elements() {
            return Ok(());
        }
        let change = self.change()?;
        let elements = self.encoded.elements() as f64;
        if let (Some(measure), Some((norm, mean_square))) = (&mut self.measure, change) {
            measure.of_change(norm, mean_square * elements);
        }
        std::mem::replace(&mut self.encoder, Encoder::new(self.encoded.to)).finish(&self.name)
    }

    /// 2-norm of the change by an adapter, if the values are exact sums, and the mean square of what products and additions in f32
    /// lose of it, among the values that were read.
    fn change(&self) -> Result<Option<(f64, f64)>> {
        /// Share of the squared change by which products in f32 may differ from it; more is missing where they are below the smallest number.
        const ROUNDED: f64 = 1e-3;
        let merged = self.values.merged();
        let Some(merged) = merged.filter(|merged| merged.pair.exact) else {
            return Ok(None);
        };
        let norm = merged.pair.load(None)?.norm();
        let Summed { values, squares } = self.summed;
        let [errors, changes] = squares.map(|sum| sum / values.max(1) as f64);
        let change = norm.powi(2) / self.encoded.elements().max(1) as f64;
        let absent = Some(change - changes).filter(|absent| *absent > ROUNDED * change);
        Ok(Some((norm, errors + absent.unwrap_or(0.0))))
    }

    /// Reads at most `max_elements` values in Hugging Face's order, from the value `first` on, of a tensor that is not on the device.
    fn values_from(&mut self, first: u64, max_elements: usize) -> Result<Vec<f32>> {
        let mut pieces = self.values.pieces(max_elements)?.starting_at(first);
        let piece = pieces.next_piece()?;
        let values = piece.map_or_else(Vec::new, |(_, values)| values.to_vec());
        self.summed.values += values.len() as u64;
        for (sum, more) in self.summed.squares.iter_mut().zip(pieces.sum_squares()) {
            *sum += more;
        }
        Ok(values)
    }

    /// Reads the values `spans` in Hugging Face's order, one span after another.
    async fn read(&mut self, spans: &[Range<u64>]) -> Result<Vec<f32>> {
        let mut values = Vec::new();
        if let Bytes::Device(flat) = self.values.bytes() {
            let encoding = self.values.encoding().unwrap_or(Encoding::F32);
            let size = encoding.unit().0 as u64;
            let parts = |span: &Range<u64>| flat.parts(&(span.start * size..span.end * size));
            let bytes = read_parts(&spans.iter().flat_map(parts).collect::<Vec<_>>()).await?;
            encoding.decode(&bytes, &mut values);
            return Ok(values);
        }
        for span in spans {
            let mut at = span.start;
            while at < span.end {
                // The spans of a call are in memory together.
                let next = self.values_from(at, (span.end - at) as usize)?;
                at += next.len() as u64;
                values.extend(next);
            }
        }
        Ok(values)
    }

    /// Reads the next part of a file whose values have other places in the tensor.
    async fn gather(&mut self, gathering: &Gathering, left: u64) -> Result<Vec<f32>> {
        let (limit, at_once) = if gathering.is_transposed() {
            (GATHERED, 1)
        } else {
            (RUN, usize::MAX)
        };
        let part = gathering.part(self.at, left.min(limit));
        let mut values = vec![0.0; (part.end - part.start) as usize];
        for runs in gathering.runs(&part, RUN).chunks(at_once) {
            let read = self.read(runs).await?;
            let mut rest = read.as_slice();
            for run in runs {
                let (own, others) = rest.split_at((run.end - run.start) as usize);
                gathering.place(&part, run.start, own, &mut values);
                rest = others;
            }
        }
        Ok(values)
    }
}
