//! Tensors that are written into a file, from the device or from another file: read in pieces, put into the file's order, and encoded.

use std::ops::Range;

use burn::tensor::{DType, Tensor};

use super::pieces::PIECE_ELEMENTS;
use super::stored_tensor::StoredTensor;
use crate::error::Result;
use crate::formats::{Encoder, Encoding, TensorType};
use crate::gpu::transfer::{PIECE_BYTES, Part, RUN_BYTES, read_parts};
use crate::state::{Conversion, Measure, PairedRows, Reordering, RowsPiece, TransposedPart};

/// Maximum number of values that are read at once.
const RUN: u64 = (RUN_BYTES / 4) as u64;

/// Maximum number of values whose order is changed at once. A transposed matrix is read once for each such piece, so it is larger.
const GATHERED: u64 = (PIECE_BYTES / 4) as u64;

/// Location of a tensor's values before they are encoded.
#[derive(Debug, Clone)]
#[allow(
    clippy::large_enum_variant,
    reason = "a handle for each tensor of a model: few, and short-lived"
)]
pub(crate) enum Values {
    /// On the device, flat: F32 or packed BF16.
    Device(Tensor<1>),
    /// In a file.
    Stored(StoredTensor),
}

impl Values {
    /// Returns their dtype before encoding.
    fn dtype(&self) -> String {
        match self {
            Self::Device(tensor) if tensor.dtype() == DType::BF16 => "BF16".into(),
            Self::Device(_) => "F32".into(),
            Self::Stored(stored) => stored.dtype().to_string(),
        }
    }

    /// Returns whether they are the exact sums of a base and an adapter's product.
    fn is_merged(&self) -> bool {
        matches!(self, Self::Stored(stored) if stored.is_merged())
    }
}

/// A tensor that is written in another type or order than it is stored in. It holds a few pieces at most, whatever its size.
#[derive(Debug, Clone)]
pub(crate) struct EncodedTensor {
    name: String,
    /// The values as they were given, with their shape in Hugging Face's order.
    given: (Values, Vec<usize>),
    values: Values,
    /// Number of rows in Hugging Face's order; the next field is the number of values in a row.
    rows: u64,
    width: u64,
    order: Reordering,
    to: TensorType,
    /// Factor of every value.
    factor: f32,
    encoder: Encoder,
    /// Measurement of the errors of the type, if it changes or rounds sums.
    measure: Option<Measure>,
    /// Number of values that were read, in the order of the file.
    at: u64,
    /// Encoded bytes that were not taken yet.
    ready: Vec<u8>,
}

impl EncodedTensor {
    /// Creates the tensor `name` of the file, with the model's `shape`, to be written in the file's `order` as `to`; its rows are whole blocks
    /// of `to`.
    pub(crate) fn new(
        name: &str,
        values: Values,
        shape: &[usize],
        order: Reordering,
        to: TensorType,
    ) -> Self {
        let rows = shape.first().map_or(1, |&rows| rows as u64);
        let width: u64 = shape.iter().skip(1).map(|&dim| dim as u64).product();
        let from = values.dtype();
        let measure = (from != to.ggml().dtype() || values.is_merged())
            .then(|| Measure::new(name, &from, to, values.is_merged()));
        let given = (values.clone(), shape.to_vec());
        let (values, order) = match (values, order.fitting(shape)) {
            // The values are in the order of the file already.
            (Values::Stored(stored), order) if stored.lies_as(order) => {
                (Values::Stored(stored.in_stored_order()), Reordering::Same)
            }
            other => other,
        };
        let name = name.to_string();
        Self {
            name,
            given,
            values,
            rows,
            width,
            order,
            to,
            factor: 1.0,
            encoder: Encoder::new(to),
            measure,
            at: 0,
            ready: Vec::new(),
        }
    }

    /// Returns the tensor with every value multiplied by `factor`.
    pub(crate) fn times(self, factor: f32) -> Self {
        Self { factor, ..self }
    }

    /// Returns the same tensor from its first value on, in Hugging Face's order.
    pub(super) fn in_order(&self) -> Self {
        Self::new(
            &self.name,
            self.given.0.clone(),
            &self.given.1,
            Reordering::Same,
            self.to,
        )
        .times(self.factor)
    }

    fn elements(&self) -> u64 {
        self.rows * self.width
    }

    /// Returns the number of bytes in the file.
    pub(super) fn bytes(&self) -> u64 {
        let (elements, bytes) = self.to.block();
        self.elements() / elements * bytes
    }

    /// Returns the errors of the conversion so far; `None` if the type stays and nothing was merged into the tensor.
    pub(super) fn conversion(&self) -> Option<Conversion> {
        self.measure.as_ref().map(Measure::conversion)
    }

    /// Returns the next `count` bytes of the file; fewer at the end. If the type cannot hold a value, the rest of the tensor is read to count
    /// such values, and the tensor is refused before any of these bytes are returned.
    pub(super) async fn take(&mut self, count: usize) -> Result<Vec<u8>> {
        while (self.ready.len() < count || self.encoder.refuses()) && self.at < self.elements() {
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
        let left = self.elements() - self.at;
        let mut next = match (self.order.rows(self.rows), self.order, &self.values) {
            (Some(rows), ..) => self.paired(rows, left).await?,
            (None, Reordering::Transposed, _) => self.transposed(left).await?,
            (.., Values::Stored(stored)) => stored.values_from(self.at, PIECE_ELEMENTS)?,
            (.., Values::Device(_)) => self.read_span(self.at..self.at + left.min(RUN)).await?,
        };
        self.at += next.len() as u64;
        if self.factor != 1.0 {
            next.iter_mut().for_each(|value| *value *= self.factor);
        }
        let encoded = self.ready.len();
        self.encoder.push(&next, &mut self.ready);
        if let Some(measure) = &mut self.measure {
            measure.compare(next, &self.ready[encoded..]);
        }
        if self.at < self.elements() {
            return Ok(());
        }
        let elements = self.elements() as f64;
        if let (Some(measure), Values::Stored(stored)) = (&mut self.measure, &self.values)
            && let Some((norm, mean_square)) = stored.change()?
        {
            measure.of_change(norm, mean_square * elements);
        }
        std::mem::replace(&mut self.encoder, Encoder::new(self.to)).finish(&self.name)
    }

    /// Reads the values `spans` in Hugging Face's order, one span after another.
    async fn read(&self, spans: &[Range<u64>]) -> Result<Vec<f32>> {
        let tensor = match &self.values {
            Values::Device(tensor) => tensor,
            Values::Stored(stored) => return stored.spans(spans),
        };
        let (size, encoding) = match tensor.dtype() {
            DType::BF16 => (2u64, Encoding::Bf16),
            _ => (4u64, Encoding::F32),
        };
        let part = |span: &Range<u64>| Part {
            tensor: tensor.clone(),
            bytes: span.start * size..span.end * size,
        };
        let bytes = read_parts(&spans.iter().map(part).collect::<Vec<_>>()).await?;
        let mut values = Vec::with_capacity(bytes.len() / size as usize);
        encoding.decode(&bytes, &mut values);
        Ok(values)
    }

    async fn read_span(&self, span: Range<u64>) -> Result<Vec<f32>> {
        self.read(std::slice::from_ref(&span)).await
    }

    /// Reads rows that have other places in the file.
    async fn paired(&self, rows: PairedRows, left: u64) -> Result<Vec<f32>> {
        match rows.into_file().piece(self.at, left, RUN, self.width) {
            RowsPiece::Heads(heads) => {
                let read = self.read_span(heads).await?;
                let mut values = Vec::with_capacity(read.len());
                // The width is that of a row in memory.
                rows.into_file()
                    .sort(&read, self.width as usize, &mut values);
                Ok(values)
            }
            RowsPiece::Rows(spans) => self.read(&spans).await,
        }
    }

    /// Reads values of a matrix that the file has transposed, gathered in one pass over the rows that have some of them.
    async fn transposed(&self, left: u64) -> Result<Vec<f32>> {
        let part = TransposedPart::new(
            [self.width, self.rows],
            self.at..self.at + left.min(GATHERED),
        );
        let mut values = vec![0.0; left.min(GATHERED) as usize];
        let Range { start: mut at, end } = part.stored();
        while at < end {
            let stop = at + (end - at).min(RUN);
            part.place(at, &self.read_span(at..stop).await?, &mut values);
            at = stop;
        }
        Ok(values)
    }
}
