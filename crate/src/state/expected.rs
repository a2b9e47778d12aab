//! State that an optimizer keeps for a parameter, by the table of optimizers (`config/optimizer.rs`): names and shapes.

use std::collections::BTreeMap;

use super::group::OptimizerRecord;
use crate::config::{Kept, OptimizerKind, StateWord, matrix};

/// State tensors that a kind of optimizer keeps for one parameter: the shape of each.
pub(crate) struct ExpectedState {
    /// State tensors of every member that has state.
    pub(crate) required: BTreeMap<StateWord, Vec<u64>>,
    /// State tensors that are allowed in addition.
    pub(crate) optional: BTreeMap<StateWord, Vec<u64>>,
}

impl ExpectedState {
    /// Lists the state tensors that `optimizer` keeps for a parameter of this shape; `state` are the shapes of the member's state tensors, which
    /// show whether the parameter is projected. `None` for an unknown kind.
    pub(crate) fn of(
        optimizer: &OptimizerRecord,
        shape: &[u64],
        state: &BTreeMap<StateWord, &[u64]>,
    ) -> Option<Self> {
        let kind = OptimizerKind::of_word(&optimizer.kind)?;
        let rank = if kind.projects() {
            rank_of(optimizer, shape, state)
        } else {
            None
        };
        let mut required = BTreeMap::new();
        let mut optional = BTreeMap::from([
            (StateWord::Step, Vec::new()),
            (StateWord::Master, shape.to_vec()),
        ]);
        for (tensor, shape) in kind.kept(shape, rank) {
            if tensor.kept == Kept::Always {
                &mut required
            } else {
                &mut optional
            }
            .insert(tensor.word, shape);
        }
        Some(Self { required, optional })
    }

    /// Shape of the state tensor `word`, if this kind has one.
    pub(crate) fn shape(&self, word: StateWord) -> Option<&[u64]> {
        self.required
            .get(&word)
            .or_else(|| self.optional.get(&word))
            .map(Vec::as_slice)
    }
}

/// Rank by which an optimizer that projects gradients projects a parameter, whose longer side (the rows of a square) gives the
/// channels; `None` for a parameter that it does not project. A norm, or moments of another shape than the parameter's, show that it does.
fn rank_of(
    optimizer: &OptimizerRecord,
    shape: &[u64],
    state: &BTreeMap<StateWord, &[u64]>,
) -> Option<u64> {
    let (rows, cols) = matrix(shape)?;
    let side = rows.min(cols);
    let moments = [StateWord::M, StateWord::V]
        .into_iter()
        .filter_map(|word| state.get(&word).copied());
    let stated: Vec<u64> = moments
        .filter(|moment| *moment != shape && moment.len() == 2)
        .map(|moment| moment[0])
        .collect();
    if !state.contains_key(&StateWord::Norm) && stated.is_empty() {
        return None;
    }
    let setting = |name: &str| {
        optimizer
            .hyperparameters
            .get(name)
            .map(|&value| whole(value))
    };
    let rank = setting("rank").or_else(|| setting("mini").filter(|&mini| mini == 1));
    // A projection is narrower than the shorter side: a parameter that is not wide enough for the rank is treated like AdamW.
    if rank.is_some_and(|rank| rank >= side) {
        return None;
    }
    Some(
        rank.or_else(|| stated.into_iter().find(|rank| (1..side).contains(rank)))
            .unwrap_or(1),
    )
}

/// Converts a count that is held as an f64; 0 for anything else. The cast saturates.
fn whole(value: f64) -> u64 {
    if value.fract() == 0.0 {
        value as u64
    } else {
        0
    }
}
