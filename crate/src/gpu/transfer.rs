//! Moves tensors to the device and back in pieces: the host holds one piece at a time, never a whole large tensor.

use burn::tensor::{DType, Device, Tensor, TensorData};
use half::bf16;

use crate::error::Result;
use crate::gpu::Buffer;
use crate::gpu::copy::Params;
use crate::gpu::flat::copy;
pub use crate::gpu::flat::{Flat, Part, read_parts};
use crate::gpu::launch::words_for;
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
    /// Numbers of elements of the tensors that follow this one, the next one last.
    following: Vec<usize>,
    /// The tensors before it.
    finished: Vec<Tensor<1>>,
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
            following: Vec::new(),
            finished: Vec::new(),
            dtype,
            target: None,
            first: 0,
            sent_words: 0,
            pending: Vec::new(),
            unsettled: false,
        }
    }

    /// Begins the upload of values that follow one another in tensors of these numbers of elements, each of which ends with a whole word.
    pub fn in_parts(mut parts: Vec<usize>, dtype: DType, device: &Device) -> Self {
        parts.reverse();
        let first = parts.pop().unwrap_or(0);
        Self {
            following: parts,
            ..Self::new(first, dtype, device)
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
            let left = self.bytes().saturating_sub(4 * self.sent_words);
            if self.pending.is_empty() {
                self.pending.reserve_exact(left.min(PIECE_BYTES));
            }
            let mut most = PIECE_BYTES - self.pending.len();
            if let Some(&next) = self.following.last() {
                most = most.min(left - self.pending.len());
                if most == 0 {
                    self.begin(next)?;
                    continue;
                }
            }
            let (now, rest) = bytes.split_at(bytes.len().min(most));
            self.pending.extend_from_slice(now);
            bytes = rest;
            if self.pending.len() == PIECE_BYTES && self.bytes() > PIECE_BYTES {
                self.send()?;
            }
        }
        Ok(())
    }

    /// Ends this tensor, which has all of its values, and begins the next one.
    fn begin(&mut self, elements: usize) -> Result<()> {
        let mut following = std::mem::take(&mut self.following);
        following.pop();
        let mut finished = std::mem::take(&mut self.finished);
        let next = Self {
            unsettled: self.unsettled,
            ..Self::new(elements, self.dtype, &self.device)
        };
        finished.push(std::mem::replace(self, next).finish()?);
        (self.following, self.finished) = (following, finished);
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
    pub fn finish(self) -> Result<Tensor<1>> {
        let mut tensors = self.finish_all()?;
        Ok(tensors.pop().expect("an upload has a tensor"))
    }

    /// Sends the rest and returns all tensors, once all their values were added.
    ///
    /// # Errors
    ///
    /// As [`Self::put_bytes`].
    ///
    /// # Panics
    ///
    /// As [`Self::finish`].
    pub fn finish_all(mut self) -> Result<Vec<Tensor<1>>> {
        let whole = 4 * self.sent_words + self.pending.len();
        assert!(
            whole == self.bytes() && self.following.is_empty(),
            "the pieces of a tensor hold its elements"
        );
        if self.target.is_some() && !self.pending.is_empty() {
            self.send()?;
        }
        self.finished.push(match self.target {
            Some(target) => target.float(),
            None => {
                let data = TensorData::from_bytes_vec(self.pending, [self.elements], self.dtype);
                Tensor::from_data(data, (&self.device, self.dtype))
            }
        });
        Ok(self.finished)
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
