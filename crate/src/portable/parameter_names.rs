//! Compares the names in a state with those of a model's parameters.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::state::Tensor;

/// Refuses a state that lacks one of the parameters `planned`, and one with further tensors, of which those count that `counts` accepts.
pub(super) fn refuse_other_names(
    tensors: &BTreeMap<String, Tensor>,
    planned: &[&str],
    counts: impl Fn(&Tensor) -> bool,
) -> Result<()> {
    let missing = planned.iter().filter(|name| !tensors.contains_key(**name));
    let missing: Vec<String> = missing.map(ToString::to_string).collect();
    if !missing.is_empty() {
        return Err(Error::MissingTensors(missing));
    }
    let further = tensors
        .iter()
        .filter(|(name, tensor)| counts(tensor) && !planned.contains(&name.as_str()));
    let further: Vec<String> = further.map(|(name, _)| name.clone()).collect();
    if further.is_empty() {
        Ok(())
    } else {
        Err(Error::UnexpectedTensors(further))
    }
}
