//! The rows that are kept for evaluation.

use super::pack::shuffle;
use super::store::Entry;
use crate::config::{DataSettings, ValidationRows};

/// Puts the examples that are trained on before those that are kept for evaluation. → how many they are. Those of a row stay together.
pub(super) fn split(entries: &mut [Entry], share: f64, settings: &DataSettings) -> usize {
    let rows = entries.last().map_or(0, |last| last.row() as usize + 1);
    let train_rows = (rows as f64 * share) as usize;
    let mut order: Vec<u32> = (0..rows as u32).collect();
    if settings.validation_rows == ValidationRows::Random && train_rows < rows {
        shuffle(&mut order, settings.seed, 0, "validation");
    }
    let mut kept = vec![false; rows];
    for row in order.iter().skip(train_rows) {
        if let Some(kept) = kept.get_mut(*row as usize) {
            *kept = true;
        }
    }
    let is_kept = |entry: &Entry| kept.get(entry.row() as usize).copied().unwrap_or(false);
    if kept.contains(&true) {
        // A stable sort keeps the order of the data on both sides.
        entries.sort_by_key(is_kept);
    }
    entries.partition_point(|entry| !is_kept(entry))
}
