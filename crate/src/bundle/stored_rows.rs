//! Reads the stored rows of a matrix, for a device that keeps them as they are.

use super::tensors::Bundle;
use crate::error::Result;
use crate::formats::{Encoding, SourceSpan};
use crate::state::{Reordering, RowOrder};

/// ggml's numbers of the plain types.
const PLAIN: [(Encoding, u32); 3] = [(Encoding::F32, 0), (Encoding::F16, 1), (Encoding::Bf16, 30)];
/// Maximum size of a piece, unless one head is larger.
const PIECE_BYTES: u64 = 8 << 20;

/// Rows of a matrix as they are stored, in the order of Hugging Face's layout.
pub(crate) struct StoredRows<'a> {
    /// Number of the type in ggml.
    pub id: u32,
    /// Rows and columns of the stored matrix.
    pub shape: [usize; 2],
    /// True if the stored matrix is [out, in] where Hugging Face's layout has [in, out].
    pub transposed: bool,
    span: &'a SourceSpan,
    row_bytes: u64,
    /// Places of the rows, if the file has them in another order, or of parts of each row, whose number this says.
    order: Option<(RowOrder, u64)>,
    at: u64,
}

impl Bundle {
    /// Tells if the file stores the matrix `name` as [out, in] where Hugging Face's layout has [in, out], and its values are those of
    /// the file.
    pub(crate) fn is_transposed(&self, name: &str) -> bool {
        let tensor = self.tensors.get(name);
        tensor.is_some_and(|tensor| {
            tensor.span().is_some() && tensor.order() == Reordering::Transposed
        })
    }

    /// Reads the stored rows of the matrix `name`; `None` for vectors, for values that differ from those of the files, and where a row does
    /// not end with a block.
    pub(crate) fn stored_rows(&self, name: &str) -> Option<StoredRows<'_>> {
        let tensor = self.tensors.get(name)?;
        let (span, encoding) = (tensor.span()?, tensor.encoding()?);
        let id = match encoding {
            Encoding::Blocks(block) => block.id,
            plain => PLAIN.iter().find(|(known, _)| *known == plain)?.1,
        };
        let &[rows, columns] = tensor.dims().as_slice() else {
            return None;
        };
        let order = tensor.order();
        let transposed = order == Reordering::Transposed;
        let (rows, columns) = match transposed {
            true => (columns, rows),
            false => (rows, columns),
        };
        let (bytes, elements) = encoding.unit();
        if !columns.is_multiple_of(elements) || rows == 0 {
            return None;
        }
        let row_bytes = (columns / elements).checked_mul(bytes)? as u64;
        let order = match order.parts_of_rows(columns as u64) {
            // The parts have to be whole blocks.
            Some((_, parts)) if !(columns / parts as usize).is_multiple_of(elements) => {
                return None;
            }
            Some(of_parts) => Some(of_parts),
            None => order.rows(rows as u64).map(|order| (order, 1)),
        };
        Some(StoredRows {
            id,
            shape: [rows, columns],
            transposed,
            span,
            row_bytes,
            order,
            at: 0,
        })
    }
}

impl StoredRows<'_> {
    /// Reads the next rows; `None` after the last.
    pub(crate) fn next_piece(&mut self) -> Result<Option<Vec<u8>>> {
        let left = self.shape[0] as u64 - self.at;
        if left == 0 {
            return Ok(None);
        }
        // Rows that change places are read together.
        let together = self.order.map_or(1, |(order, parts)| order.run() / parts);
        let rows = ((PIECE_BYTES / (together * self.row_bytes).max(1)).max(1) * together).min(left);
        let begin = self.at * self.row_bytes;
        let stored = self.span.read(&(begin..begin + rows * self.row_bytes))?;
        self.at += rows;
        let Some((order, parts)) = self.order else {
            return Ok(Some(stored));
        };
        let mut ordered = Vec::with_capacity(stored.len());
        // A row is shorter than the piece, which is in memory.
        order.sort(&stored, (self.row_bytes / parts) as usize, &mut ordered);
        Ok(Some(ordered))
    }
}
