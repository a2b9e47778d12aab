//! Computes the digests of a whole state and compares them with stated ones (crate/FORMATS.md, "Digests").

use std::collections::BTreeMap;

use serde::Serialize;

use super::digest::{assignment_digest, optimizer_digest, state_digest, weights_digest};
use super::{CheckResult, ModelStateGroupAssignment, StatedDigests, TensorRole};
use crate::error::{Refusal, Result, word};
use crate::formats::{Digest, refuse_all};

/// The four digests of a state dict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StateDigests {
    /// Digest of parameters and buffers.
    pub weights: Digest,
    /// Digest of state tensors.
    pub optimizer: Digest,
    /// Digest of the groups.
    pub assignment: Digest,
    /// Digest of the three together.
    pub state: Digest,
}

impl StateDigests {
    /// Computes the digests of tensors, given role and leaf of each by key, and of groups.
    ///
    /// # Errors
    /// The errors of [`assignment_digest`].
    pub fn of(
        leaves: &BTreeMap<String, (TensorRole, Digest)>,
        groups: &[ModelStateGroupAssignment],
    ) -> Result<Self> {
        let part = |state: bool| {
            let of_part = leaves
                .iter()
                .filter(|(_, (role, _))| role.is_state() == state);
            of_part
                .map(|(key, (_, leaf))| (key.clone(), *leaf))
                .collect()
        };
        let (weights, optimizer) = (weights_digest(&part(false)), optimizer_digest(&part(true)));
        let assignment = assignment_digest(groups)?;
        Ok(Self {
            weights,
            optimizer,
            assignment,
            state: state_digest(weights, optimizer, assignment),
        })
    }

    /// Compares the digests with the stated ones. `whole` states whether they cover all parameters and buffers of the artifact, and all its
    /// state tensors; a digest of a part only is not compared.
    ///
    /// # Errors
    /// `digest.mismatch` for each that differs; the subject is `weights`, `optimizer`, `assignment` or `state`.
    pub fn verify(
        &self,
        stated: &StatedDigests,
        whole: (bool, bool),
    ) -> Result<BTreeMap<&'static str, CheckResult>> {
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
                None => CheckResult::Absent,
                Some(_) if !whole => CheckResult::Subset,
                Some(stated) if stated == found => CheckResult::Verified,
                Some(stated) => {
                    let refusal = Refusal::new(word!("digest.mismatch"))
                        .stage("read")
                        .subject(name);
                    refusals.push(refusal.expected(stated).found(found));
                    continue;
                }
            };
            results.insert(name, result);
        }
        refuse_all(refusals)?;
        Ok(results)
    }
}
