//! Computes the digests of a whole state or artifact and compares them with stated ones (crate/FORMATS.md, "Digests").

use std::collections::BTreeMap;

use serde::Serialize;

use super::digest::{
    assignment_digest, bundle_digest, optimizer_digest, state_digest, weights_digest,
};
use super::receipt_parts::CheckResult;
use super::{Identity, ModelStateGroupAssignment, StatedDigests, TensorRole};
use crate::error::{Refusal, Result, refuse_all, word};
use crate::formats::Digest;

/// The four digests of a state dict ([example](crate::portable)).
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
    #[doc(hidden)]
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
    #[doc(hidden)]
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

/// Identity of an artifact and the digests that are known without reading its tensors.
#[derive(Debug, Clone, Default)]
pub(crate) struct ArtifactDigests {
    /// Identity of the artifact, as stated by an import of it.
    pub(crate) identity: Identity,
    /// Digest of the weights; this one and that of the state tensors are present where they are known without hashing the tensors.
    pub(crate) weights: Option<Digest>,
    pub(crate) optimizer: Option<Digest>,
    /// Digest of the groups, if there are any.
    pub(crate) assignment: Option<Digest>,
    /// Digest of the tokenizer, if there is one that can be read.
    pub(crate) tokenizer: Option<Digest>,
    /// Digest of the chat templates, if there are any.
    pub(crate) template: Option<Digest>,
}

impl ArtifactDigests {
    /// Creates the digests of an artifact whose manifest has this identity and these groups.
    pub(crate) fn of_manifest(
        identity: &Identity,
        groups: &[ModelStateGroupAssignment],
    ) -> Result<Self> {
        let known = (!groups.is_empty()).then(|| assignment_digest(groups));
        Ok(Self {
            identity: identity.clone(),
            assignment: known.transpose()?,
            ..Self::default()
        })
    }

    /// The same with the digests of the tokenizer and of the chat templates. A tokenizer that is refused leaves the tensors usable: it has
    /// no digest.
    pub(crate) fn with(mut self, [tokenizer, template]: [Option<Digest>; 2]) -> Self {
        (self.tokenizer, self.template) = (tokenizer, template);
        self
    }

    /// Completes the digests of the artifact. Those of the whole state and of the bundle are computed from the others.
    pub(crate) fn digests(
        &self,
        weights: Option<Digest>,
        optimizer: Option<Digest>,
    ) -> Result<StatedDigests> {
        let mut digests = StatedDigests {
            weights,
            optimizer,
            assignment: self.assignment,
            tokenizer: self.tokenizer,
            template: self.template,
            ..StatedDigests::default()
        };
        if let Some(weights) = weights {
            let none = BTreeMap::new();
            let optimizer = optimizer.unwrap_or_else(|| optimizer_digest(&none));
            let groups = self.assignment.map_or_else(|| assignment_digest(&[]), Ok)?;
            digests.state = Some(state_digest(weights, optimizer, groups));
            digests.bundle = Some(bundle_digest(&self.identity, &digests));
        }
        Ok(digests)
    }
}
