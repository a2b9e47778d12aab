//! A matrix of a GGUF file whose rows are stored in another order: whole rows move, whatever their dtype.

use super::source::ByteSource;
use crate::error::Result;

/// Source of the rows in Hugging Face's order: one half of each head after the other, where the file alternates between the halves.
pub(crate) struct PairedRows<S> {
    pub(crate) source: S,
    /// First byte of the matrix.
    pub(crate) begin: u64,
    /// Number of bytes in a row.
    pub(crate) row: u64,
    pub(crate) rows: u64,
    /// Number of rows of a head, always even.
    pub(crate) head_rows: u64,
}

impl<S: ByteSource> PairedRows<S> {
    /// Returns the file's row of row `p·H/2 + j` of a head: `2j + p`.
    fn stored_row(&self, n: u64) -> u64 {
        let (head, n) = (n / self.head_rows, n % self.head_rows);
        let half = self.head_rows / 2;
        head * self.head_rows + 2 * (n % half) + n / half
    }

    /// Fills `head` with the whole head whose first row is `first`, read at once.
    fn read_head(&self, first: u64, row: usize, head: &mut [u8]) -> Result<()> {
        let mut stored = vec![0; head.len()];
        self.source.read_at(self.begin + first * self.row, &mut stored)?;
        for (n, target) in (first..).zip(head.chunks_exact_mut(row)) {
            // The offset is inside the head, which is in memory.
            let from = (self.stored_row(n) - first) as usize * row;
            target.copy_from_slice(&stored[from..from + row]);
        }
        Ok(())
    }
}

impl<S: ByteSource> ByteSource for PairedRows<S> {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn len(&self) -> u64 {
        self.rows * self.row
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let (mut at, mut rest) = (offset, buf);
        let head = self.head_rows * self.row;
        while !rest.is_empty() {
            let (n, column) = (at / self.row, at % self.row);
            let whole = usize::try_from(head).ok().filter(|head| column == 0 && n.is_multiple_of(self.head_rows) && *head <= rest.len());
            let left = self.row - column;
            let now = whole.unwrap_or_else(|| usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len())));
            let (piece, after) = rest.split_at_mut(now);
            match whole {
                // A row is shorter than its head, which is in memory, so the cast is exact.
                Some(_) => self.read_head(n, self.row as usize, piece)?,
                None => self.source.read_at(self.begin + self.stored_row(n) * self.row + column, piece)?,
            }
            rest = after;
            at += now as u64;
        }
        Ok(())
    }
}
