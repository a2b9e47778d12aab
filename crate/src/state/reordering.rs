//! Order of a matrix's elements in a file, where it is not that of Hugging Face. Rows change places, and matrices are transposed, here alone:
//! for bytes and for values, out of the order of a file and into it.

use super::gathering::{Gathering, Order};
use super::row_order::{RowOrder, Rows, Tiles};
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
    /// In the same order, as F32 with 1 added to each value: the weights of Gemma's norms in GGUF.
    PlusOne,
    /// Without the middle one of three dimensions, which is 1: the taps of convolutions in GGUF.
    Squeezed,
    /// The rows of heads in the order of [`Tiles`].
    Tiled(Tiles),
    /// The columns of heads in the order of [`Tiles`].
    TiledColumns(Tiles),
    /// As [`Self::Tiled`], and [`Self::Squeezed`].
    TiledTaps(Tiles),
    /// As [`Self::Tiled`], as F32 and −exp of each value: the rates of decays in GGUF.
    Rates(Tiles),
}

impl Reordering {
    /// Shape in a file of a tensor of this shape.
    pub(crate) fn shape_in_file(self, shape: &[u64]) -> Vec<u64> {
        match (self, shape) {
            (Self::Transposed, _) => shape.iter().rev().copied().collect(),
            (Self::Squeezed | Self::TiledTaps(_), &[channels, 1, taps]) => vec![channels, taps],
            _ => shape.to_vec(),
        }
    }

    /// Shape of a tensor that has this shape in a file.
    pub(crate) fn shape_of_file(self, shape: &[u64]) -> Vec<u64> {
        match (self, shape) {
            (Self::Transposed, _) => shape.iter().rev().copied().collect(),
            (Self::Squeezed | Self::TiledTaps(_), &[channels, taps]) => vec![channels, 1, taps],
            _ => shape.to_vec(),
        }
    }

    /// This order for a tensor of this shape: where the rows are no whole number of heads, or the tensor is no matrix, that of Hugging Face.
    pub(crate) fn fitting(self, shape: &[u64]) -> Self {
        let fits = match self {
            Self::Same | Self::PlusOne | Self::Squeezed => true,
            Self::PairedRows(_) | Self::Tiled(_) | Self::TiledTaps(_) | Self::Rates(_) => {
                self.rows(shape.first().copied().unwrap_or(1)).is_some()
            }
            Self::TiledColumns(tiles) => matches!(shape, [_, width] if *width == tiles.rows()),
            Self::Transposed => shape.len() == 2,
        };
        if fits { self } else { Self::Same }
    }

    /// True if the elements of a row are not together in the file, so that blocks of elements cannot change their places.
    pub(crate) fn moves_columns(self) -> bool {
        matches!(self, Self::Transposed | Self::TiledColumns(_))
    }

    /// True if the file has other values, as F32.
    pub(crate) fn changes_values(self) -> bool {
        matches!(self, Self::PlusOne | Self::Rates(_))
    }

    /// Turns values of a file into those of Hugging Face.
    pub(crate) fn out_of_file(self, values: &mut [f32]) {
        match self {
            Self::PlusOne => values.iter_mut().for_each(|value| *value -= 1.0),
            Self::Rates(_) => values.iter_mut().for_each(|value| *value = (-*value).ln()),
            _ => {}
        }
    }

    /// Turns values of Hugging Face into those of a file.
    pub(crate) fn into_file(self, values: &mut [f32]) {
        match self {
            Self::PlusOne => values.iter_mut().for_each(|value| *value += 1.0),
            Self::Rates(_) => values.iter_mut().for_each(|value| *value = -value.exp()),
            _ => {}
        }
    }

    /// Places of the rows of a matrix with this many, if they are not those of Hugging Face; out of the file.
    pub(crate) fn rows(self, rows: u64) -> Option<RowOrder> {
        let kind = match self {
            Self::PairedRows(heads) => {
                let heads = heads as u64;
                let fits = heads > 0 && rows > 0 && rows.is_multiple_of(2 * heads);
                fits.then(|| Rows::Paired {
                    head_rows: rows / heads,
                })?
            }
            Self::Tiled(tiles) | Self::TiledTaps(tiles) | Self::Rates(tiles) => {
                (tiles.rows() == rows).then_some(Rows::Tiled(tiles))?
            }
            _ => return None,
        };
        Some(RowOrder {
            kind,
            into_file: false,
        })
    }

    /// Places of the heads of a matrix whose columns have this many, out of the file: the parts of a row are seen as rows of their own, whose
    /// number this returns, too.
    pub(crate) fn parts_of_rows(self, columns: u64) -> Option<(RowOrder, u64)> {
        let Self::TiledColumns(tiles) = self else {
            return None;
        };
        let parts = Tiles { width: 1, ..tiles };
        (tiles.rows() == columns).then(|| {
            let order = RowOrder {
                kind: Rows::Tiled(parts),
                into_file: false,
            };
            (order, parts.rows())
        })
    }

    /// Describes how a tensor [rows, width] is gathered out of its file, or its file out of it. `None` if both have the same order.
    pub(crate) fn gathering(self, [rows, width]: [u64; 2], into_file: bool) -> Option<Gathering> {
        let (order, [rows, width]) = match self {
            Self::Transposed if into_file => (Order::Transposed, [width, rows]),
            Self::Transposed => (Order::Transposed, [rows, width]),
            _ => {
                let (order, shape) = match self.parts_of_rows(width) {
                    Some((order, parts)) => (order, [rows * parts, width / parts]),
                    None => (self.rows(rows)?, [rows, width]),
                };
                let order = if into_file { order.reversed() } else { order };
                (Order::Rows(order), shape)
            }
        };
        Some(Gathering { order, rows, width })
    }

    /// The bytes `begin..begin + bytes` of `source` in Hugging Face's order, from the first byte on, if the file has another one. The shape is
    /// Hugging Face's; a transposed matrix is dense.
    pub(crate) fn ordered<'a, S: ByteSource + 'a>(
        self,
        source: S,
        begin: u64,
        bytes: u64,
        shape: &[u64],
    ) -> Option<Box<dyn ByteSource + 'a>> {
        if self == Self::PlusOne {
            return Some(Box::new(LessOne {
                source,
                begin,
                bytes,
            }));
        }
        if let Self::Rates(_) = self {
            return Some(Box::new(Logarithms {
                source,
                begin,
                bytes,
                order: self,
            }));
        }
        let (shape, element) = match (self, shape) {
            (Self::Transposed, &[rows, columns]) => {
                let elements = rows
                    .checked_mul(columns)
                    .filter(|elements| *elements > 0 && bytes.is_multiple_of(*elements))?;
                ([rows, columns], bytes / elements)
            }
            (Self::TiledColumns(_), &[rows, columns]) => {
                let elements = rows
                    .checked_mul(columns)
                    .filter(|elements| *elements > 0 && bytes.is_multiple_of(*elements))?;
                ([rows, columns], bytes / elements)
            }
            // Whole rows move, whatever their dtype.
            (_, &[rows, ..]) if rows > 0 && bytes > 0 && bytes.is_multiple_of(rows) => {
                ([rows, bytes / rows], 1)
            }
            _ => return None,
        };
        let gathering = self.gathering(shape, false)?;
        matches!(element, 1 | 2 | 4 | 8).then(|| {
            Box::new(Ordered {
                source,
                begin,
                bytes,
                element,
                gathering,
            }) as _
        })
    }
}

/// Bytes of a matrix whose elements have other places in its file.
struct Ordered<S> {
    source: S,
    begin: u64,
    bytes: u64,
    /// Number of bytes of an element: 1, 2, 4 or 8.
    element: u64,
    gathering: Gathering,
}

impl<S: ByteSource> Ordered<S> {
    /// Fills `buf` with the bytes from `offset` on, in elements of `N` bytes.
    fn gather<const N: usize>(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let size = N as u64;
        let part = offset / size..(offset + buf.len() as u64).div_ceil(size);
        // The part is as long as the buffer, but for an element at either end.
        let before = (offset - part.start * size) as usize;
        let mut elements = vec![[0; N]; (part.end - part.start) as usize];
        let mut read = Vec::new();
        for run in self.gathering.runs(&part, RUN_BYTES / size) {
            read.resize((run.end - run.start) as usize, [0; N]);
            let begin = self.begin + run.start * size;
            self.source.read_at(begin, read.as_flattened_mut())?;
            self.gathering.place(&part, run.start, &read, &mut elements);
        }
        buf.copy_from_slice(&elements.as_flattened()[before..][..buf.len()]);
        Ok(())
    }
}

impl<S: ByteSource> ByteSource for Ordered<S> {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn len(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        match self.element {
            1 => self.gather::<1>(offset, buf),
            2 => self.gather::<2>(offset, buf),
            4 => self.gather::<4>(offset, buf),
            _ => self.gather::<8>(offset, buf),
        }
    }
}

/// Values of F32 that its file has with 1 added.
struct LessOne<S> {
    source: S,
    begin: u64,
    bytes: u64,
}

impl<S: ByteSource> ByteSource for LessOne<S> {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn len(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        const SIZE: u64 = 4;
        // Whole values, of which the buffer may begin and end inside one.
        let first = offset / SIZE * SIZE;
        let end = (offset + buf.len() as u64).next_multiple_of(SIZE);
        let mut whole = vec![0; (end.min(self.bytes) - first) as usize];
        self.source.read_at(self.begin + first, &mut whole)?;
        less_one(&mut whole);
        buf.copy_from_slice(&whole[(offset - first) as usize..][..buf.len()]);
        Ok(())
    }
}

/// Logarithms of rates that their file has negated and in another order: few values, which are read together.
struct Logarithms<S> {
    source: S,
    begin: u64,
    bytes: u64,
    order: Reordering,
}

impl<S: ByteSource> ByteSource for Logarithms<S> {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn len(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let mut bytes = vec![0; self.bytes as usize];
        self.source.read_at(self.begin, &mut bytes)?;
        let stored = bytes.as_chunks::<4>().0.iter();
        let stored: Vec<f32> = stored.map(|value| f32::from_le_bytes(*value)).collect();
        let mut values = Vec::with_capacity(stored.len());
        match self.order.rows(stored.len() as u64) {
            Some(order) => order.sort(&stored, 1, &mut values),
            None => values = stored,
        }
        self.order.out_of_file(&mut values);
        let ordered: Vec<u8> = values.into_iter().flat_map(f32::to_le_bytes).collect();
        buf.copy_from_slice(&ordered[offset as usize..][..buf.len()]);
        Ok(())
    }
}

/// Subtracts 1 from values of F32, given as their bytes.
pub(crate) fn less_one(bytes: &mut [u8]) {
    for value in bytes.as_chunks_mut::<4>().0 {
        *value = (f32::from_le_bytes(*value) - 1.0).to_le_bytes();
    }
}

/// Transposes a flat matrix in memory: [rows, width] → [width, rows].
pub(crate) fn transposed(values: &[f32], width: usize) -> Vec<f32> {
    (0..width)
        .flat_map(|column| values.iter().skip(column).step_by(width).copied())
        .collect()
}
