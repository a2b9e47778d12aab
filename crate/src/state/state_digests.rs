//! The digests of a whole state, and their comparison with stated ones (crate/FORMATS.md, "Digests").

use std::collections::BTreeMap;

use serde::Serialize;

use super::digest::{assignment_digest, optimizer_digest, state_digest, weights_digest};
use super::{ModelStateGroupAssignment, StatedDigests, TensorRole};
use crate::error::{Error, Refusal, Result, word};
use crate::formats::Digest;

/// The four digests that a state dict has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StateDigests {
    /// Of parameters and buffers.
    pub weights: Digest,
    /// Of state tensors.
    pub optimizer: Digest,
    /// Of the groups.
    pub assignment: Digest,
    /// Of the three together.
    pub state: Digest,
}

/// What became of a digest that an artifact may state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StatedResult {
    /// It was computed, and is equal.
    Verified,
    /// The artifact does not state it.
    Absent,
    /// Some of what it covers was left out.
    Subset,
    /// The values were not read.
    Skipped,
}

impl StateDigests {
    /// The digests of tensors, given role and leaf of each by key, and of groups.
    pub fn of(leaves: &BTreeMap<String, (TensorRole, Digest)>, groups: &[ModelStateGroupAssignment]) -> Result<Self> {
        let part = |state: bool| {
            let of_part = leaves.iter().filter(|(_, (role, _))| matches!(role, TensorRole::State(_)) == state);
            of_part.map(|(key, (_, leaf))| (key.clone(), *leaf)).collect()
        };
        let (weights, optimizer) = (weights_digest(&part(false)), optimizer_digest(&part(true)));
        let assignment = assignment_digest(groups)?;
        Ok(Self { weights, optimizer, assignment, state: state_digest(weights, optimizer, assignment) })
    }

    /// Compares them with the stated ones. `whole` says whether these digests cover all parameters and buffers of the artifact, and all state
    /// tensors; what covers a part only is not compared.
    ///
    /// # Errors
    /// `digest.mismatch` for each that differs; the subject is `weights`, `optimizer`, `assignment` or `state`.
    pub fn verify(&self, stated: &StatedDigests, whole: (bool, bool)) -> Result<BTreeMap<&'static str, StatedResult>> {
        let parts = [
            ("weights", stated.weights, self.weights, whole.0),
            ("optimizer", stated.optimizer, self.optimizer, whole.1),
            ("assignment", stated.assignment, self.assignment, true),
            ("state", stated.state, self.state, whole.0 && whole.1),
        ];
        let mut refusals = Vec::new();
        let mut results = BTreeMap::new();
        for (name, stated, found, whole) in parts {
            let result = match stated {
                None => StatedResult::Absent,
                Some(_) if !whole => StatedResult::Subset,
                Some(stated) => {
                    if stated != found {
                        refusals.push(Refusal::new(word!("digest.mismatch")).stage("read").subject(name).expected(stated).found(found));
                    }
                    StatedResult::Verified
                }
            };
            results.insert(name, result);
        }
        if refusals.is_empty() { Ok(results) } else { Err(Error::Refused(refusals)) }
    }
}
