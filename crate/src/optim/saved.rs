//! Entries of an optimizer file whose values have not been read yet.

use std::ops::Range;
use std::rc::Rc;

use super::state_tensor::StateTensor;
use crate::error::{Error, Result};
use crate::gpu::Buffer;
use crate::gpu::transfer::{RUN_BYTES, Upload};
use crate::interrupt::Interrupt;

/// A function that reads bytes of a saved tensor from an offset on.
pub type ReadSaved<'a> = Box<dyn Fn(u64, &mut [u8]) -> Result<()> + 'a>;

/// One entry of an optimizer file, whose values have not been read yet.
pub struct SavedState<'a> {
    /// Name, `<param>:<state>`.
    #[doc(hidden)]
    pub name: String,
    /// The dtype word of safetensors.
    #[doc(hidden)]
    pub dtype: String,
    /// Shape in the file.
    #[doc(hidden)]
    pub shape: Vec<u64>,
    /// Length of the values in bytes.
    #[doc(hidden)]
    pub bytes: u64,
    /// The function that reads the values, little-endian.
    #[doc(hidden)]
    pub read: ReadSaved<'a>,
}

impl<'a> SavedState<'a> {
    /// Cuts the entry into `parts`, which have these names and rows of its tensor. A tensor of another number of rows is not cut, and fits none.
    pub(super) fn cut(self, parts: Vec<(String, Range<usize>)>) -> Vec<Self> {
        let rows = parts.last().map_or(0, |(_, rows)| rows.end) as u64;
        let fits = self.shape.first() == Some(&rows) && self.bytes.is_multiple_of(rows);
        let (row, read) = (
            self.bytes / rows.max(1),
            Rc::<ReadSaved<'a>>::from(self.read),
        );
        let part = |(name, rows): (String, Range<usize>)| {
            let (read, mut shape) = (Rc::clone(&read), self.shape.clone());
            let (mut first, mut bytes) = (0, self.bytes);
            if fits {
                (first, bytes) = (rows.start as u64 * row, rows.len() as u64 * row);
                shape[0] = rows.len() as u64;
            }
            Self {
                name,
                dtype: self.dtype.clone(),
                shape,
                bytes,
                read: Box::new(move |at, out| read(first + at, out)),
            }
        };
        parts.into_iter().map(part).collect()
    }
}

impl SavedState<'_> {
    /// Makes an entry from one of [`Optim::state_tensors`](super::Optim::state_tensors) whose bytes are in memory.
    pub fn from_bytes(name: String, entry: &StateTensor, bytes: Vec<u8>) -> Self {
        let shape = entry.shape.iter().map(|&dim| dim as u64).collect();
        let length = bytes.len() as u64;
        let read = move |at: u64, out: &mut [u8]| {
            let found = usize::try_from(at)
                .ok()
                .and_then(|at| bytes.get(at..)?.get(..out.len()));
            let found = found.ok_or_else(|| Error::CheckpointLength {
                file: "state".into(),
                expected: at + out.len() as u64,
                found: length,
            })?;
            out.copy_from_slice(found);
            Ok(())
        };
        Self {
            name,
            dtype: entry.dtype.to_string(),
            shape,
            bytes: length,
            read: Box::new(read),
        }
    }

    pub(super) fn is(&self, dtype: &str, shape: &[usize], bytes: usize) -> bool {
        let same = self.shape.len() == shape.len()
            && self
                .shape
                .iter()
                .zip(shape)
                .all(|(&saved, &own)| saved == own as u64);
        same && self.dtype == dtype && self.bytes == bytes as u64
    }

    pub(super) fn shown(&self) -> String {
        format!("{} {:?} of {} bytes", self.dtype, self.shape, self.bytes)
    }

    /// Sends the values to the device piece by piece.
    pub(super) async fn upload(&self, mut upload: Upload, interrupt: &Interrupt) -> Result<Buffer> {
        let (mut at, mut run) = (0, Vec::new());
        while at < self.bytes {
            let left = self.bytes - at;
            run.resize(
                usize::try_from(left).map_or(RUN_BYTES, |left| left.min(RUN_BYTES)),
                0,
            );
            (self.read)(at, &mut run)?;
            upload.put_bytes(&run)?;
            upload.settle(interrupt).await?;
            at += run.len() as u64;
        }
        if self.dtype == "U8" {
            // To whole words.
            let filling = self.bytes.next_multiple_of(4) - self.bytes;
            upload.put_bytes(&[0; 3][..filling as usize])?;
        }
        Ok(upload.finish()?.into())
    }
}
