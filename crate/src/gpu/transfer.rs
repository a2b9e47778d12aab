//! Moves tensors to the device and back in pieces: the host holds one piece at a time, never a whole large tensor.

use std::ops::Range;

use burn::tensor::{DType, Device, Tensor, TensorData};
use half::bf16;

use crate::error::Result;
use crate::gpu::copy::{KERNEL, Params};
use crate::gpu::launch::words_for;
use crate::gpu::{Buffer, read_data, run};
use crate::interrupt::Interrupt;

/// Maximum size of a piece in bytes.
pub const PIECE_BYTES: usize = 8 << 20;

/// Number of bytes that are read from a file, or computed, at a time before they are added to a piece.
pub(crate) const RUN_BYTES: usize = 2 << 20;

fn staged(mut bytes: Vec<u8>, device: &Device) -> (Buffer, usize) {
    let words = bytes.len().div_ceil(4);
    bytes.resize(words * 4, 0);
    let data = TensorData::from_bytes_vec(bytes, [words], DType::F32);
    // A piece has fewer than 2³² words.
    (
        Tensor::<1>::from_data(data, (device, DType::F32)).into(),
        words,
    )
}

fn copy(x: Buffer, y: Buffer, params: Params) -> Result<Buffer> {
    let [y] = run(&KERNEL, [x], [y], &params, KERNEL.groups(params.n))?;
    Ok(y)
}

/// Copies these bytes into `target` from the word `start` on, the last word filled up with zeros.
pub(super) fn copied(
    bytes: Vec<u8>,
    device: &Device,
    target: Buffer,
    start: usize,
) -> Result<Buffer> {
    let (staging, n) = staged(bytes, device);
    copy(
        staging,
        target,
        Params {
            n,
            x_start: 0,
            y_start: start,
        },
    )
}

/// A tensor on its way to the device, f32 or packed bf16. Its values are added in order, in runs of any length.
#[derive(Debug)]
pub struct Upload {
    device: Device,
    elements: usize,
    dtype: DType,
    /// The tensor on the device; `Some` once the first piece was sent.
    target: Option<Buffer>,
    /// Index of the word of the target that the first value goes to.
    first: usize,
    sent_words: usize,
    pending: Vec<u8>,
    unsettled: bool,
}

impl Upload {
    /// Begins the upload of a tensor `[elements]`, F32 or BF16.
    pub fn new(elements: usize, dtype: DType, device: &Device) -> Self {
        Self {
            device: device.clone(),
            elements,
            dtype,
            target: None,
            first: 0,
            sent_words: 0,
            pending: Vec::new(),
            unsettled: false,
        }
    }

    /// Begins the upload of a tensor `[elements]`, F32 or BF16, into `target` from its word `first` on. [`Upload::finish`] returns all of `target`.
    pub fn into(
        target: Buffer,
        first: usize,
        elements: usize,
        dtype: DType,
        device: &Device,
    ) -> Self {
        // Fewer than 2³² words: a buffer that can be bound.
        Self {
            target: Some(target),
            first,
            ..Self::new(elements, dtype, device)
        }
    }

    /// The size of the tensor in bytes.
    fn bytes(&self) -> usize {
        self.elements * self.dtype.size()
    }

    /// Adds the next values; for a bf16 tensor they are rounded to nearest.
    ///
    /// # Errors
    ///
    /// As [`Self::put_bytes`].
    pub fn put(&mut self, values: &[f32]) -> Result<()> {
        match self.dtype {
            DType::BF16 => values.chunks(PIECE_BYTES / 2).try_for_each(|values| {
                let packed: Vec<bf16> = values.iter().map(|&value| bf16::from_f32(value)).collect();
                self.put_bytes(bytemuck::cast_slice(&packed))
            }),
            _ => self.put_bytes(bytemuck::cast_slice(values)),
        }
    }

    /// Adds the next values as the device stores them, little-endian, and sends each piece of a large tensor as soon as it is full.
    ///
    /// # Errors
    ///
    /// As [`run`], which copies a piece to its place.
    pub fn put_bytes(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            if self.pending.is_empty() {
                let left = self.bytes().saturating_sub(4 * self.sent_words);
                self.pending.reserve_exact(left.min(PIECE_BYTES));
            }
            let (now, rest) = bytes.split_at(bytes.len().min(PIECE_BYTES - self.pending.len()));
            self.pending.extend_from_slice(now);
            bytes = rest;
            if self.pending.len() == PIECE_BYTES && self.bytes() > PIECE_BYTES {
                self.send()?;
            }
        }
        Ok(())
    }

    fn send(&mut self) -> Result<()> {
        let (staging, words) = staged(std::mem::take(&mut self.pending), &self.device);
        let target = self
            .target
            .take()
            .unwrap_or_else(|| staging.empty_like([self.elements], self.dtype));
        self.target = Some(copy(
            staging,
            target,
            Params {
                n: words,
                x_start: 0,
                y_start: self.first + self.sent_words,
            },
        )?);
        self.sent_words += words;
        self.unsettled = true;
        Ok(())
    }

    /// Waits until the sent pieces are on the device, so that no queue holds them, and pauses. Call it between pieces.
    ///
    /// # Errors
    ///
    /// `device.lost`; `call.aborted` if the interrupt was requested.
    pub async fn settle(&mut self, interrupt: &Interrupt) -> Result<()> {
        if std::mem::take(&mut self.unsettled)
            && let Some(target) = &self.target
        {
            settled(target.clone().float()).await?;
            interrupt.pause().await?;
        }
        Ok(())
    }

    /// Sends the rest and returns the tensor `[elements]`, once all its values were added.
    ///
    /// # Errors
    ///
    /// As [`Self::put_bytes`].
    ///
    /// # Panics
    ///
    /// If values are missing, or there are too many.
    pub fn finish(mut self) -> Result<Tensor<1>> {
        let whole = 4 * self.sent_words + self.pending.len();
        assert_eq!(
            whole,
            self.bytes(),
            "the pieces of a tensor hold its elements"
        );
        if self.target.is_some() && !self.pending.is_empty() {
            self.send()?;
        }
        Ok(match self.target {
            Some(target) => target.float(),
            None => {
                let data = TensorData::from_bytes_vec(self.pending, [self.elements], self.dtype);
                Tensor::from_data(data, (&self.device, self.dtype))
            }
        })
    }
}

/// Waits until all work submitted before is done on the device of `tensor`, which must not be empty.
///
/// # Errors
///
/// `device.lost`.
pub async fn settled(tensor: Tensor<1>) -> Result<()> {
    read_parts(&[Part {
        tensor,
        bytes: 0..4,
    }])
    .await
    .map(drop)
}

/// Allocates zeros `[elements]`, F32 or BF16.
///
/// # Errors
///
/// As [`run`], which copies the zeros of a large tensor to their places.
pub fn zeros(elements: usize, dtype: DType, device: &Device) -> Result<Tensor<1>> {
    let mut upload = Upload::new(elements, dtype, device);
    if upload.bytes() <= PIECE_BYTES {
        upload.pending = vec![0; upload.bytes()];
        return upload.finish();
    }
    let (zeros, piece) = staged(vec![0; PIECE_BYTES], device);
    let mut target = zeros.empty_like([elements], dtype);
    let words = words_for(elements, dtype);
    let mut done = 0;
    while done < words {
        let n = piece.min(words - done);
        target = copy(
            zeros.clone(),
            target,
            Params {
                n,
                x_start: 0,
                y_start: done,
            },
        )?;
        done += n;
    }
    Ok(target.float())
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
        bytes.extend_from_slice(&own[skip..skip + (part.bytes.end - part.bytes.start) as usize]);
        words = rest;
    }
    Ok(bytes)
}
