//! State that each kind of optimizer keeps for a parameter (shaders/README.md, "Update rules"): names, shapes and dtypes.

use std::collections::BTreeMap;

use super::group::OptimizerRecord;
use super::tensor::StateWord;

/// Kinds of optimizers that tabtune trains with.
pub(crate) const TRAINED: [&str; 4] = ["adafactor", "adamw", "apollo", "sgd"];

/// State tensors that a kind of optimizer keeps for one parameter: the shape of each.
pub(crate) struct ExpectedState {
    /// State tensors of every member that has state.
    pub(crate) required: BTreeMap<StateWord, Vec<u64>>,
    /// State tensors that are allowed in addition.
    pub(crate) optional: BTreeMap<StateWord, Vec<u64>>,
}

impl ExpectedState {
    /// Returns what `optimizer` keeps for a parameter of this shape; `state` are the shapes of the member's state tensors, which show whether
    /// APOLLO projects it. `None` for an unknown kind.
    pub(crate) fn of(optimizer: &OptimizerRecord, shape: &[u64], state: &BTreeMap<StateWord, &[u64]>) -> Option<Self> {
        let own = || shape.to_vec();
        let moments = || BTreeMap::from([(StateWord::M, own()), (StateWord::V, own())]);
        let mut optional = BTreeMap::from([(StateWord::Step, Vec::new()), (StateWord::Master, own())]);
        let required = match optimizer.kind.as_str() {
            "sgd" | "lars" => {
                optional.insert(StateWord::Momentum, own());
                BTreeMap::new()
            }
            "adam" | "adamw" | "lamb" => moments(),
            "adafactor" => {
                optional.insert(StateWord::M, own());
                match matrix(shape) {
                    Some((rows, cols)) => BTreeMap::from([(StateWord::Row, vec![rows]), (StateWord::Col, vec![cols])]),
                    None => BTreeMap::from([(StateWord::Row, own())]),
                }
            }
            "apollo" => match projected(optimizer, shape, state) {
                Some(projection) => {
                    BTreeMap::from([(StateWord::M, projection.clone()), (StateWord::V, projection), (StateWord::Norm, Vec::new())])
                }
                None => moments(),
            },
            _ => return None,
        };
        Some(Self { required, optional })
    }

    /// Returns the shape of the state tensor `word`, if this kind has one.
    pub(crate) fn shape(&self, word: StateWord) -> Option<&[u64]> {
        self.required.get(&word).or_else(|| self.optional.get(&word)).map(Vec::as_slice)
    }
}

/// Returns the dtypes in which a state tensor may be stored.
pub(crate) fn dtypes(word: StateWord) -> &'static [&'static str] {
    match word {
        StateWord::Step => &["U64"],
        StateWord::M | StateWord::V | StateWord::Momentum => &["F32", "BF16", "F16"],
        StateWord::Row | StateWord::Col | StateWord::Norm | StateWord::Master => &["F32"],
    }
}

/// Returns a shape of at least two dimensions as rows (the product of all but the last) and columns.
fn matrix(shape: &[u64]) -> Option<(u64, u64)> {
    let (&cols, leading) = shape.split_last()?;
    (!leading.is_empty()).then(|| (leading.iter().copied().fold(1, u64::saturating_mul), cols))
}

/// Returns the shape of the moments of a parameter that APOLLO projects, [rank, channels], where the channels are the longer side (the rows of
/// a square); `None` for one that it treats like AdamW. A norm, or moments of another shape than the parameter's, show that it is projected.
fn projected(optimizer: &OptimizerRecord, shape: &[u64], state: &BTreeMap<StateWord, &[u64]>) -> Option<Vec<u64>> {
    let (rows, cols) = matrix(shape)?;
    let (side, channels) = (rows.min(cols), rows.max(cols));
    let moments = [StateWord::M, StateWord::V].into_iter().filter_map(|word| state.get(&word).copied());
    let stated: Vec<u64> = moments.filter(|moment| *moment != shape && moment.len() == 2).map(|moment| moment[0]).collect();
    if !state.contains_key(&StateWord::Norm) && stated.is_empty() {
        return None;
    }
    let setting = |name: &str| optimizer.hyperparameters.get(name).map(|&value| whole(value));
    let rank = setting("rank").or_else(|| setting("mini").filter(|&mini| mini == 1));
    // A projection is narrower than the shorter side: a parameter that is not wide enough for the rank is treated like AdamW.
    if rank.is_some_and(|rank| rank >= side) {
        return None;
    }
    let rank = rank.or_else(|| stated.into_iter().find(|rank| (1..side).contains(rank))).unwrap_or(1);
    Some(vec![rank, channels])
}

/// Converts a count that is held as an f64; 0 for anything else. The cast saturates.
fn whole(value: f64) -> u64 {
    if value.fract() == 0.0 { value as u64 } else { 0 }
}
