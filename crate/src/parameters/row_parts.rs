//! Names of the tensors of a matrix that lies in parts: the name of the matrix, and the rows of the part.

use std::ops::Range;

/// The last element of the path of a part: `rows[00004096..00008192]`, so that parts are in order when they are sorted by name.
pub(crate) fn rows_name(rows: &Range<usize>) -> String {
    format!("rows[{:08}..{:08}]", rows.start, rows.end)
}

/// Splits the name of a part into the name of its matrix and its rows; `None` for any other name.
pub(crate) fn part_of(name: &str) -> Option<(&str, Range<usize>)> {
    let (whole, rows) = name.strip_suffix(']')?.rsplit_once(".rows[")?;
    let (start, end) = rows.split_once("..")?;
    Some((whole, start.parse().ok()?..end.parse().ok()?))
}

/// The name of the matrix of a part, and any other name as it is.
pub(crate) fn whole_name(name: &str) -> &str {
    part_of(name).map_or(name, |(whole, _)| whole)
}
