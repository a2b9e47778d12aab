//! Moves the blocks of a packed matrix to the device in pieces. On the device they lie in planes of words.

use burn::tensor::{DType, Device, Tensor};

use crate::error::Result;
use crate::gpu::transfer::{PIECE_BYTES, copied, settled};
use crate::gpu::{Buffer, StoredMatrix};
use crate::interrupt::Interrupt;

/// A packed matrix on its way to the device. Its bytes are added in the order of the file, in runs of any length. The device stores them in a
/// buffer of exactly their size, which no memory pool rounds up.
#[derive(Debug)]
pub struct PackedUpload {
    device: Device,
    form: StoredMatrix,
    /// The matrix on the device; `Some` once the first piece was sent.
    target: Option<Buffer>,
    sent_blocks: usize,
    pending: Vec<u8>,
    unsettled: bool,
}

impl PackedUpload {
    /// Begins the upload of a matrix.
    pub fn new(form: StoredMatrix, device: &Device) -> Self {
        Self {
            device: device.clone(),
            form,
            target: None,
            sent_blocks: 0,
            pending: Vec::new(),
            unsettled: false,
        }
    }

    /// The storage type and shape of the matrix.
    pub fn form(&self) -> StoredMatrix {
        self.form
    }

    /// The number of bytes that have not been added yet.
    pub(crate) fn room(&self) -> usize {
        let left = self.form.blocks() - self.sent_blocks;
        left * self.form.storage.block().1 - self.pending.len()
    }

    /// The size of a piece in bytes: an even number of blocks, so that it ends with a whole word in both planes.
    fn piece_bytes(&self) -> usize {
        let pair = 2 * self.form.storage.block().1;
        PIECE_BYTES / pair * pair
    }

    /// Adds the next bytes of the file, and sends each piece as soon as it is full.
    ///
    /// # Errors
    ///
    /// As [`run`](crate::gpu::run), which copies a piece to its place.
    pub fn put_bytes(&mut self, mut bytes: &[u8]) -> Result<()> {
        let piece = self.piece_bytes();
        while !bytes.is_empty() {
            if self.pending.is_empty() {
                let left = (self.form.blocks() - self.sent_blocks) * self.form.storage.block().1;
                self.pending.reserve_exact(left.min(piece));
            }
            let (now, rest) = bytes.split_at(bytes.len().min(piece - self.pending.len()));
            self.pending.extend_from_slice(now);
            bytes = rest;
            if self.pending.len() == piece {
                self.send()?;
            }
        }
        Ok(())
    }

    fn send(&mut self) -> Result<()> {
        let (_, block) = self.form.storage.block();
        let blocks = std::mem::take(&mut self.pending);
        // Both planes of the pieces sent before end with a whole word: only the last piece may have an odd number of blocks.
        let [first, second] = self.form.storage.words(self.sent_blocks);
        let starts = [first, self.form.plane() + second];
        let (device, words) = (&self.device, self.form.words());
        let empty = |()| Tensor::<1>::empty([words], (device, DType::F32));
        let mut target = self
            .target
            .take()
            .unwrap_or_else(|| device.memory_persistent_allocations((), empty).into());
        for (plane, start) in self
            .form
            .storage
            .split(&blocks)
            .into_iter()
            .zip(starts)
            .filter(|(plane, _)| !plane.is_empty())
        {
            // Fewer than 2³² words: a buffer that can be bound.
            target = copied(plane, device, target, start)?;
        }
        self.target = Some(target);
        self.sent_blocks += blocks.len() / block;
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

    /// Sends the rest and returns the words of the matrix `[words]`, once all its bytes were added.
    ///
    /// # Errors
    ///
    /// As [`Self::put_bytes`].
    ///
    /// # Panics
    ///
    /// If bytes are missing, or there are too many.
    pub fn finish(mut self) -> Result<Tensor<1>> {
        self.send()?;
        assert_eq!(
            self.sent_blocks,
            self.form.blocks(),
            "the pieces of a matrix hold its blocks"
        );
        Ok(self.target.map_or_else(
            || Tensor::empty([0], (&self.device, DType::F32)),
            Buffer::float,
        ))
    }
}
