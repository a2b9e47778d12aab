//! Values on the device as a file has them: one after another, in one tensor or several, and read in pieces.

use std::ops::Range;

use burn::tensor::{DType, Tensor};

use crate::error::Result;
use crate::gpu::copy::{KERNEL, Params};
use crate::gpu::{Buffer, read_data, run};

/// Values of one dtype on the device, F32 or packed BF16: a flat tensor, or several of them that follow one another where one could not be bound.
#[derive(Debug, Clone)]
pub struct Flat(Vec<Part>);

impl From<Tensor<1>> for Flat {
    fn from(tensor: Tensor<1>) -> Self {
        let bytes = 0..(tensor.dims()[0] * tensor.dtype().size()) as u64;
        Self(vec![Part { tensor, bytes }])
    }
}

impl Flat {
    /// Appends the values that follow.
    pub fn append(&mut self, next: Self) {
        self.0.extend(next.0);
    }

    /// The first tensor.
    pub fn first(&self) -> &Tensor<1> {
        &self.0[0].tensor
    }

    /// The dtype of the values.
    pub fn dtype(&self) -> DType {
        self.first().dtype()
    }

    /// The number of bytes.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(Part::len).sum()
    }

    /// The parts of tensors in which these bytes are.
    pub fn parts(&self, bytes: &Range<u64>) -> Vec<Part> {
        let (mut parts, mut first) = (Vec::new(), 0);
        for part in &self.0 {
            let end = first + part.len();
            let (from, to) = (bytes.start.max(first), bytes.end.min(end));
            if from < to {
                let begin = part.bytes.start;
                parts.push(Part {
                    tensor: part.tensor.clone(),
                    bytes: begin + from - first..begin + to - first,
                });
            }
            first = end;
        }
        parts
    }

    /// The values in these bytes.
    #[must_use]
    pub fn slice(&self, bytes: &Range<u64>) -> Self {
        Self(self.parts(bytes))
    }
}

/// A range of bytes of a tensor on the device, as they are stored.
#[derive(Debug, Clone)]
pub struct Part {
    /// The tensor.
    pub tensor: Tensor<1>,
    /// The range of bytes; not empty.
    pub bytes: Range<u64>,
}

impl Part {
    fn len(&self) -> u64 {
        self.bytes.end - self.bytes.start
    }

    /// The index of the first 32-bit word that holds the bytes, and the number of words.
    fn words(&self) -> (usize, usize) {
        let (first, end) = (self.bytes.start / 4, self.bytes.end.div_ceil(4));
        (first as usize, (end - first) as usize)
    }
}

/// Reads the bytes of all `parts` in one read and returns them one after another. The tensors must be on one device; the total should be small.
///
/// # Errors
///
/// `kernel.mixed-devices` for tensors of different devices; `device.lost`.
pub async fn read_parts(parts: &[Part]) -> Result<Vec<u8>> {
    let Some(first) = parts.first() else {
        return Ok(Vec::new());
    };
    if let [part] = parts
        && part.bytes.start == 0
        && part.bytes.end == (part.tensor.dims()[0] * part.tensor.dtype().size()) as u64
    {
        let data = read_data(part.tensor.clone()).await?;
        return Ok(
            data.as_bytes()[..(part.bytes.end as usize).min(data.as_bytes().len())].to_vec(),
        );
    }
    let total: usize = parts.iter().map(|part| part.words().1).sum();
    let mut staging = Buffer::from(first.tensor.clone()).floats_like([total]);
    let mut at = 0;
    for part in parts {
        let (first, n) = part.words();
        // Word indices fit: a tensor has fewer than 2³² elements, and a staging buffer is as long as a few pieces.
        let params = Params {
            n,
            x_start: first,
            y_start: at,
        };
        staging = copy(part.tensor.clone().into(), staging, params)?;
        at += n;
    }
    let data = read_data(staging.float::<1>()).await?;
    let (mut words, mut bytes) = (data.as_bytes(), Vec::new());
    for part in parts {
        let (_, n) = part.words();
        let (own, rest) = words.split_at(4 * n);
        let skip = (part.bytes.start % 4) as usize;
        bytes.extend_from_slice(&own[skip..skip + part.len() as usize]);
        words = rest;
    }
    Ok(bytes)
}

/// Copies words of x into y, of which the others stay.
pub(super) fn copy(x: Buffer, y: Buffer, params: Params) -> Result<Buffer> {
    let [y] = run(&KERNEL, [x], [y], &params, KERNEL.groups(params.n))?;
    Ok(y)
}
