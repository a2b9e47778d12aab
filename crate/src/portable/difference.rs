//! Reads the tensors of two models of the same shape together and subtracts them.

use crate::bundle::{Bundle, PIECE_ELEMENTS, Pieces};
use crate::error::Result;
use crate::interrupt::Interrupt;

/// Maximum number of values between two pauses.
const STEP: usize = 1 << 18;

/// Differences of two models' tensors. Nothing of a tensor is kept: each pass reads both models' files piece by piece.
pub(super) struct Difference<'a> {
    pub(super) tuned: &'a Bundle,
    pub(super) base: &'a Bundle,
    pub(super) interrupt: &'a Interrupt,
    /// Callback with the number of values that were read, and their total number.
    pub(super) progress: &'a mut dyn FnMut(u64, u64),
    pub(super) done: u64,
    pub(super) total: u64,
}

impl Difference<'_> {
    /// Calls `each` with the differences of the tensor `name`, in its order and exact in f64, in blocks of `size` values, of which the last may
    /// be shorter. Returns the numbers of NaN and infinite values of the tuned model and of the base.
    ///
    /// # Errors
    /// Errors of reading; `call.aborted` if the interrupt was requested.
    pub(super) async fn read(
        &mut self,
        name: &str,
        size: usize,
        mut each: impl FnMut(&mut [f64]),
    ) -> Result<[u64; 2]> {
        let side = |bundle| -> Result<Side> {
            Ok(Side {
                pieces: Bundle::pieces(bundle, name, PIECE_ELEMENTS)?,
                taken: 0,
            })
        };
        let (mut tuned, mut base) = (side(self.tuned)?, side(self.base)?);
        let (mut block, mut since): (Vec<f64>, usize) = (Vec::new(), 0);
        self.pause().await?;
        loop {
            let count = tuned
                .ready()?
                .min(base.ready()?)
                .min(STEP)
                .min(size - block.len());
            if count == 0 {
                break;
            }
            let pairs = tuned.take(count).iter().zip(base.take(count));
            block.extend(pairs.map(|(tuned, base)| f64::from(*tuned) - f64::from(*base)));
            if block.len() == size {
                each(&mut block);
                block.clear();
            }
            self.done += count as u64;
            since += count;
            if since >= STEP {
                since = 0;
                self.pause().await?;
            }
        }
        if !block.is_empty() {
            each(&mut block);
        }
        Ok([tuned.pieces.non_finite(), base.pieces.non_finite()])
    }

    async fn pause(&mut self) -> Result<()> {
        (self.progress)(self.done, self.total);
        self.interrupt.pause().await
    }

    /// Counts values that need not be read.
    pub(super) fn skip(&mut self, values: u64) {
        self.done += values;
    }
}

/// Pieces of one model's tensor.
struct Side {
    pieces: Pieces,
    /// Number of values of the last piece that were used.
    taken: usize,
}

impl Side {
    /// Number of values in memory, after reading the next piece if needed; 0 after the last.
    fn ready(&mut self) -> Result<usize> {
        if self.taken == self.pieces.values().len() {
            if self.pieces.next_piece()?.is_none() {
                return Ok(0);
            }
            self.taken = 0;
        }
        Ok(self.pieces.values().len() - self.taken)
    }

    fn take(&mut self, count: usize) -> &[f32] {
        let from = self.taken;
        self.taken += count;
        &self.pieces.values()[from..self.taken]
    }
}
