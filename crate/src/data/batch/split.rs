//! Selects the rows that are kept for evaluation.

use super::examples::StoredExamples;
use super::pack::shuffle;
use crate::config::{DataSettings, ValidationRows};

/// Returns how many of `count` rows or tokens are trained on, where the others are the share that is kept for evaluation, rounded to whole
/// ones. Nothing is kept of less than `least`.
fn trained(count: usize, settings: &DataSettings, least: usize) -> usize {
    if count < least {
        return count;
    }
    let kept = count as f64 * settings.validation_fraction.clamp(0.0, 1.0);
    count.saturating_sub(kept.round() as usize)
}

/// Returns how many tokens of a text are trained on.
pub(super) fn trained_tokens(count: usize, settings: &DataSettings) -> usize {
    trained(count, settings, settings.divided_from[1])
}

/// Returns how many rows are trained on.
fn trained_rows(count: usize, settings: &DataSettings) -> usize {
    trained(count, settings, settings.divided_from[0])
}

/// Returns why no row is kept for evaluation, if a share of them is to be kept.
pub(super) fn none_kept(examples: &StoredExamples, settings: &DataSettings) -> Option<String> {
    let rows = examples.last().map_or(0, |last| last.row() as usize + 1);
    let share = settings.validation_fraction;
    let enough = rows >= settings.divided_from[0];
    if share <= 0.0 || rows == 0 || !enough || rows > 1 && trained_rows(rows, settings) < rows {
        return None;
    }
    Some(if rows == 1 {
        "a single row cannot be divided".to_owned()
    } else {
        format!("{share} of {rows} rows is less than half a row")
    })
}

/// Moves the examples of the training part before those kept for evaluation, and returns their number. Examples of one row stay together.
pub(super) fn split(examples: &mut StoredExamples, settings: &DataSettings) -> usize {
    let rows = examples.last().map_or(0, |last| last.row() as usize + 1);
    // A single row cannot be divided.
    let train_rows = trained_rows(rows, settings).max(1);
    if train_rows >= rows {
        return examples.len();
    }
    let mut order: Vec<u32> = (0..rows as u32).collect();
    if settings.validation_rows == ValidationRows::Random {
        shuffle(&mut order, settings.seed, 0, "validation");
    }
    let mut kept = vec![false; rows];
    for row in order.iter().skip(train_rows) {
        kept[*row as usize] = true;
    }
    examples.partition(|example| kept.get(example.row() as usize) == Some(&true))
}
