//! One row of a data file.

use serde_json::{Map, Value};

use super::json::ROW_BYTES;

/// A row, or the reason why it cannot be read.
pub(super) type Row = std::result::Result<Map<String, Value>, String>;

/// Returns the fault of a row that is too long.
pub(super) fn too_long() -> String {
    format!("a row of more than {} MiB", ROW_BYTES >> 20)
}
