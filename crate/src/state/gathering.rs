//! Gathers a matrix out of a file that has its elements in another order, or into one.

use std::ops::Range;

use super::row_order::RowOrder;

/// A matrix [rows, width] whose elements are gathered, a part at a time, from a file or a tensor that has them in another order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gathering {
    pub(super) order: Order,
    pub(super) rows: u64,
    pub(super) width: u64,
}

/// Order of the elements that a matrix is gathered from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Order {
    Rows(RowOrder),
    Transposed,
}

/// Divides the elements `range` of a matrix into those of each row, which has this width: the row, and its elements.
fn lines(range: Range<u64>, width: u64) -> impl Iterator<Item = (u64, Range<u64>)> {
    let rows = range.start / width..range.end.div_ceil(width);
    rows.map(move |row| {
        let begin = range.start.max(row * width);
        (row, begin..range.end.min((row + 1) * width))
    })
}

impl Gathering {
    /// True if a part needs the whole source, or much of it.
    pub(crate) fn is_transposed(&self) -> bool {
        matches!(self.order, Order::Transposed)
    }

    /// The part that begins at element `at`, of `most` elements or fewer: whole heads where they fit.
    pub(crate) fn part(&self, at: u64, most: u64) -> Range<u64> {
        let head = match self.order {
            Order::Rows(rows) => rows.run() * self.width,
            Order::Transposed => 1,
        };
        let fits = (1..=most).contains(&head) && at.is_multiple_of(head);
        at..at + if fits { most / head * head } else { most }
    }

    /// The runs of stored elements that are read for a part, of at most `limit` elements each.
    pub(crate) fn runs(&self, part: &Range<u64>, limit: u64) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        let mut push = |run: Range<u64>| match runs.last_mut() {
            Some(last) if last.end == run.start && run.end - last.start <= limit => {
                last.end = run.end;
            }
            _ => runs.push(run),
        };
        match self.order {
            Order::Rows(rows) => {
                let head = rows.run() * self.width;
                for (_, elements) in lines(part.clone(), head) {
                    // A whole head has the same elements in both orders.
                    if elements.end - elements.start == head && head <= limit {
                        push(elements);
                        continue;
                    }
                    for (row, elements) in lines(elements, self.width) {
                        let from = rows.row(row) * self.width + elements.start % self.width;
                        push(from..from + elements.end - elements.start);
                    }
                }
            }
            Order::Transposed => {
                let columns = self.columns(part);
                let stored = columns.start * self.rows..columns.end * self.rows;
                for begin in stored.clone().step_by(limit as usize) {
                    push(begin..stored.end.min(begin + limit));
                }
            }
        }
        runs
    }

    /// The columns in which a part has elements.
    fn columns(&self, part: &Range<u64>) -> Range<u64> {
        let mut rows = lines(part.clone(), self.width);
        match (rows.next(), rows.next()) {
            (None, _) => 0..0,
            (Some((row, elements)), None) => {
                let first = row * self.width;
                elements.start - first..elements.end - first
            }
            _ => 0..self.width,
        }
    }

    /// Copies the elements of a run, which begins at the stored element `at`, to their places in a part.
    pub(crate) fn place<T: Copy>(&self, part: &Range<u64>, at: u64, run: &[T], values: &mut [T]) {
        let stored = at..at + run.len() as u64;
        // All indices lie inside slices that are in memory.
        match self.order {
            Order::Rows(rows) => {
                for (row, elements) in lines(stored, self.width) {
                    let place = rows.reversed().row(row) * self.width + elements.start % self.width;
                    let count = (elements.end - elements.start) as usize;
                    let values = &mut values[(place - part.start) as usize..][..count];
                    values.copy_from_slice(&run[(elements.start - at) as usize..][..count]);
                }
            }
            Order::Transposed => {
                for (column, elements) in lines(stored, self.rows) {
                    // Rows whose element of this column is in the part.
                    let [first, end] = [part.start, part.end]
                        .map(|bound| bound.saturating_sub(column).div_ceil(self.width));
                    let start = column * self.rows;
                    for row in first.max(elements.start - start)..end.min(elements.end - start) {
                        values[(row * self.width + column - part.start) as usize] =
                            run[(start + row - at) as usize];
                    }
                }
            }
        }
    }
}
