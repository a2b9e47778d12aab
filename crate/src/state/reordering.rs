//! Order of a matrix's elements in a file, where it is not that of Hugging Face. Rows change places, and matrices are transposed, here alone:
//! for bytes and for values, out of the order of a file and into it.

use std::ops::Range;

use crate::error::Result;
use crate::formats::ByteSource;

/// Maximum number of bytes of a transposed matrix that are read at once.
const RUN_BYTES: u64 = 4 << 20;

/// Order in which a file stores the elements of a matrix, as the model's family states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reordering {
    /// Stored as in Hugging Face's files.
    Same,
    /// The rows of each head (the field is the number of heads) alternate between its two halves; Hugging Face stores one half after the other.
    PairedRows(usize),
    /// Stored [out, in]; Hugging Face's Conv1D has [in, out].
    Transposed,
}

impl Reordering {
    /// Returns the order of a tensor of this shape: where the rows are no whole number of heads, or the tensor is no matrix, that of Hugging
    /// Face.
    pub(crate) fn fitting(self, shape: &[u64]) -> Self {
        let rows = shape.first().copied().unwrap_or(1);
        match self {
            Self::PairedRows(heads)
                if heads == 0 || rows == 0 || !rows.is_multiple_of(2 * heads as u64) =>
            {
                Self::Same
            }
            Self::Transposed if shape.len() != 2 => Self::Same,
            order => order,
        }
    }

    /// Returns the places of the rows of a matrix with this many, if they are not those of Hugging Face; out of the file.
    pub(crate) fn rows(self, rows: u64) -> Option<PairedRows> {
        let Self::PairedRows(heads) = self else {
            return None;
        };
        let heads = heads as u64;
        let fits = heads > 0 && rows > 0 && rows.is_multiple_of(2 * heads);
        fits.then(|| PairedRows {
            head_rows: rows / heads,
            into_file: false,
        })
    }

    /// Returns the bytes `begin..begin + bytes` of `source` in Hugging Face's order, from the first byte on, if the file has another one. The
    /// shape is Hugging Face's; a transposed matrix is dense.
    pub(crate) fn ordered<'a, S: ByteSource + 'a>(
        self,
        source: S,
        begin: u64,
        bytes: u64,
        shape: &[u64],
    ) -> Option<Box<dyn ByteSource + 'a>> {
        match (self, shape) {
            (Self::Transposed, &[rows, columns]) => {
                let elements = rows
                    .checked_mul(columns)
                    .filter(|elements| *elements > 0 && bytes.is_multiple_of(*elements))?;
                let width = bytes / elements;
                matches!(width, 1 | 2 | 4 | 8).then(|| {
                    Box::new(Transposed {
                        source,
                        begin,
                        shape: [rows, columns],
                        width,
                    }) as _
                })
            }
            (_, &[rows, ..]) if bytes > 0 && bytes.is_multiple_of(rows.max(1)) => {
                let order = self.rows(rows)?;
                Some(Box::new(Permuted {
                    source,
                    begin,
                    bytes,
                    row: bytes / rows,
                    order,
                }))
            }
            _ => None,
        }
    }
}

/// Rows of heads whose two halves alternate in a file, as llama.cpp expects queries and keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PairedRows {
    head_rows: u64,
    into_file: bool,
}

/// Elements that are read to make a piece of a matrix with paired rows.
pub(crate) enum RowsPiece {
    /// Whole heads, whose rows change places in memory.
    Heads(Range<u64>),
    /// Rows and parts of rows, in the order of the piece.
    Rows(Vec<Range<u64>>),
}

impl PairedRows {
    /// Returns the same order in the other direction: out of Hugging Face's order into that of the file.
    pub(crate) fn into_file(self) -> Self {
        Self {
            into_file: true,
            ..self
        }
    }

    /// Returns the number of rows of a head.
    pub(crate) fn head_rows(self) -> u64 {
        self.head_rows
    }

    /// Returns the row that comes to place `n`. Row `p·H/2 + j` of a head of H rows is the file's row `2j + p`.
    fn row(self, n: u64) -> u64 {
        let (first, n, half) = (
            n - n % self.head_rows,
            n % self.head_rows,
            self.head_rows / 2,
        );
        first
            + if self.into_file {
                n % 2 * half + n / 2
            } else {
                2 * (n % half) + n / half
            }
    }

    /// Appends the rows of whole heads, `width` elements each, in the other order.
    pub(crate) fn sort<T: Copy>(self, rows: &[T], width: usize, sorted: &mut Vec<T>) {
        for n in 0..(rows.len() / width.max(1)) as u64 {
            // The row is inside the slice.
            let from = self.row(n) as usize * width;
            sorted.extend_from_slice(&rows[from..from + width]);
        }
    }

    /// Plans the piece that begins at element `at` of `left`, in rows of `width` elements: whole heads if they fit into `limit` elements, else at
    /// most `limit` elements of rows.
    pub(crate) fn piece(self, at: u64, left: u64, limit: u64, width: u64) -> RowsPiece {
        let head = self.head_rows * width;
        if head > 0 && head <= limit.min(left) && at.is_multiple_of(head) {
            return RowsPiece::Heads(at..at + limit.min(left) / head * head);
        }
        let (mut at, end, mut spans) = (at, at + left.min(limit), Vec::new());
        while at < end {
            let (row, column) = (at / width, at % width);
            let count = (width - column).min(end - at);
            let from = self.row(row) * width + column;
            spans.push(from..from + count);
            at += count;
        }
        RowsPiece::Rows(spans)
    }
}

/// Bytes of a matrix whose rows have other places in its file. Whole rows move, whatever their dtype.
struct Permuted<S> {
    source: S,
    begin: u64,
    bytes: u64,
    /// Number of bytes in a row.
    row: u64,
    order: PairedRows,
}

impl<S: ByteSource> ByteSource for Permuted<S> {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn len(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let (mut at, mut rest) = (offset, buf);
        while !rest.is_empty() {
            // From the beginning of a head on, whole heads are read.
            let to_head =
                Some(at % (self.order.head_rows() * self.row)).filter(|column| *column > 0);
            let left = to_head.map_or(rest.len() as u64, |column| {
                (self.order.head_rows() * self.row - column).min(rest.len() as u64)
            });
            let planned = self.order.piece(at, left, left, self.row);
            // Each span is as long as a part of the buffer.
            let mut next = |bytes: Range<u64>| {
                let (piece, after) =
                    std::mem::take(&mut rest).split_at_mut((bytes.end - bytes.start) as usize);
                (rest, at) = (after, at + piece.len() as u64);
                self.source
                    .read_at(self.begin + bytes.start, piece)
                    .map(|()| piece)
            };
            match planned {
                RowsPiece::Heads(heads) => {
                    let piece = next(heads)?;
                    let mut sorted = Vec::with_capacity(piece.len());
                    self.order.sort(piece, self.row as usize, &mut sorted);
                    piece.copy_from_slice(&sorted);
                }
                RowsPiece::Rows(spans) => spans
                    .into_iter()
                    .try_for_each(|span| next(span).map(drop))?,
            }
        }
        Ok(())
    }
}

/// A part of the elements of a matrix that is stored transposed.
pub(crate) struct TransposedPart {
    rows: u64,
    columns: u64,
    part: Range<u64>,
}

impl TransposedPart {
    /// Describes the elements `part` of the matrix [rows, columns], which is stored [columns, rows].
    pub(crate) fn new([rows, columns]: [u64; 2], part: Range<u64>) -> Self {
        Self {
            rows,
            columns,
            part,
        }
    }

    /// Returns the stored elements among which the part is: whole stored rows.
    pub(crate) fn stored(&self) -> Range<u64> {
        let Some(last) = self
            .part
            .end
            .checked_sub(1)
            .filter(|last| *last >= self.part.start)
        else {
            return 0..0;
        };
        let is_in_one_row = self.part.start / self.columns == last / self.columns;
        let columns = if is_in_one_row {
            self.part.start % self.columns..last % self.columns + 1
        } else {
            0..self.columns
        };
        columns.start * self.rows..columns.end * self.rows
    }

    /// Copies from `run`, the stored elements from `at` on, those that belong to the part to their places in it.
    pub(crate) fn place<T: Copy>(&self, at: u64, run: &[T], part: &mut [T]) {
        let (mut from, stop) = (at, at + run.len() as u64);
        while from < stop {
            let (column, begin) = (from / self.rows, from % self.rows);
            let end = (begin + stop - from).min(self.rows);
            // Rows whose element of this column is in the part.
            let rows = [self.part.start, self.part.end]
                .map(|bound| bound.saturating_sub(column).div_ceil(self.columns));
            for row in begin.max(rows[0])..end.min(rows[1]) {
                // Both indices lie inside slices that are in memory.
                part[(row * self.columns + column - self.part.start) as usize] =
                    run[(from - at + row - begin) as usize];
            }
            from += end - begin;
        }
    }
}

/// Bytes of a dense matrix that is stored transposed.
struct Transposed<S> {
    source: S,
    begin: u64,
    /// Rows and columns in Hugging Face's order.
    shape: [u64; 2],
    /// Number of bytes in an element.
    width: u64,
}

impl<S: ByteSource> Transposed<S> {
    /// Reads the elements `part`, of `N` bytes each.
    fn gather<const N: usize>(&self, part: Range<u64>) -> Result<Vec<[u8; N]>> {
        let mut elements = vec![[0; N]; usize::try_from(part.end - part.start).unwrap_or(0)];
        let part = TransposedPart::new(self.shape, part);
        let (mut at, end) = (part.stored().start, part.stored().end);
        let mut run = Vec::new();
        while at < end {
            let count = (end - at).min(RUN_BYTES / self.width);
            run.resize(count as usize, [0; N]);
            self.source
                .read_at(self.begin + at * self.width, run.as_flattened_mut())?;
            part.place(at, &run, &mut elements);
            at += count;
        }
        Ok(elements)
    }
}

impl<S: ByteSource> ByteSource for Transposed<S> {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn len(&self) -> u64 {
        self.shape[0] * self.shape[1] * self.width
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let part = offset / self.width..(offset + buf.len() as u64).div_ceil(self.width);
        let before = (offset - part.start * self.width) as usize;
        let bytes = match self.width {
            1 => self.gather::<1>(part)?.into_flattened(),
            2 => self.gather::<2>(part)?.into_flattened(),
            4 => self.gather::<4>(part)?.into_flattened(),
            _ => self.gather::<8>(part)?.into_flattened(),
        };
        buf.copy_from_slice(&bytes[before..before + buf.len()]);
        Ok(())
    }
}

/// Transposes a flat matrix in memory: [rows, width] → [width, rows].
pub(crate) fn transposed(values: &[f32], width: usize) -> Vec<f32> {
    (0..width)
        .flat_map(|column| values.iter().skip(column).step_by(width).copied())
        .collect()
}
