//! A matrix of a file that is stored transposed with respect to Hugging Face's layout: GPT-2's, in GGUF files.

use super::source::ByteSource;
use crate::error::Result;

/// Transpose of a dense matrix: [columns, rows] of a matrix that is stored [rows, columns].
pub(crate) struct Transposed<S> {
    pub(crate) source: S,
    /// First byte of the matrix.
    pub(crate) begin: u64,
    /// Number of stored rows.
    pub(crate) rows: u64,
    /// Number of stored columns.
    pub(crate) columns: u64,
    /// Number of bytes in an element.
    pub(crate) width: u64,
}

impl<S: ByteSource> ByteSource for Transposed<S> {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn len(&self) -> u64 {
        self.rows * self.columns * self.width
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let end = offset + buf.len() as u64;
        let given = self.rows * self.width;
        // The stored columns that the range touches; within each stored row they are read at once.
        let (first, last) = (offset / given, end.div_ceil(given));
        let mut run = vec![0; usize::try_from((last - first) * self.width).unwrap_or(0)];
        for row in 0..self.rows {
            self.source.read_at(self.begin + (row * self.columns + first) * self.width, &mut run)?;
            for column in first..last {
                let at = column * given + row * self.width;
                for byte in 0..self.width {
                    let (at, from) = (at + byte, (column - first) * self.width + byte);
                    if (offset..end).contains(&at) {
                        // Both indices lie inside slices that are in memory.
                        buf[(at - offset) as usize] = run[from as usize];
                    }
                }
            }
        }
        Ok(())
    }
}
