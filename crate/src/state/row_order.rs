//! Rows that have other places in a file than in Hugging Face's.

/// Order of the heads of several groups: a file has first the first head of each group, then the second of each, and so on; Hugging Face has the
/// heads of one group after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tiles {
    /// Number of rows in front of the heads.
    pub first: usize,
    /// Number of groups.
    pub groups: usize,
    /// Number of heads of a group.
    pub heads: usize,
    /// Number of rows of a head.
    pub width: usize,
}

impl Tiles {
    /// Number of rows, with those in front.
    pub(super) fn rows(self) -> u64 {
        (self.first + self.groups * self.heads * self.width) as u64
    }
}

/// Order of rows in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rows {
    /// The two halves of a head alternate, as llama.cpp expects queries and keys.
    Paired { head_rows: u64 },
    /// The heads of groups alternate.
    Tiled(Tiles),
}

/// Rows that have other places in a file than in Hugging Face's, within runs of a certain number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowOrder {
    pub(super) kind: Rows,
    pub(super) into_file: bool,
}

impl RowOrder {
    /// The same order in the other direction.
    pub(super) fn reversed(self) -> Self {
        Self {
            into_file: !self.into_file,
            ..self
        }
    }

    /// Number of rows that change places among themselves: those of a head, or of all groups.
    pub(crate) fn run(self) -> u64 {
        match self.kind {
            Rows::Paired { head_rows } => head_rows,
            Rows::Tiled(tiles) => tiles.rows(),
        }
    }

    /// Row that comes to place `n`. Row `p·H/2 + j` of a head of H rows is the file's row `2j + p`; head j of group g is the file's head `j G + g`.
    pub(super) fn row(self, n: u64) -> u64 {
        let run = self.run();
        let (before, n) = (n - n % run, n % run);
        let row = match self.kind {
            Rows::Paired { head_rows } => {
                let half = head_rows / 2;
                if self.into_file {
                    n % 2 * half + n / 2
                } else {
                    2 * (n % half) + n / half
                }
            }
            Rows::Tiled(tiles) => {
                let first = tiles.first as u64;
                if n < first {
                    return before + n;
                }
                let (groups, heads) = (tiles.groups as u64, tiles.heads as u64);
                let (head, row) = (
                    (n - first) / tiles.width as u64,
                    (n - first) % tiles.width as u64,
                );
                let head = if self.into_file {
                    head % groups * heads + head / groups
                } else {
                    head % heads * groups + head / heads
                };
                first + head * tiles.width as u64 + row
            }
        };
        before + row
    }

    /// Appends the rows of whole heads, `width` elements each, in the other order.
    pub(crate) fn sort<T: Copy>(self, rows: &[T], width: usize, sorted: &mut Vec<T>) {
        for n in 0..(rows.len() / width.max(1)) as u64 {
            // The row is inside the slice.
            let from = self.row(n) as usize * width;
            sorted.extend_from_slice(&rows[from..from + width]);
        }
    }
}
