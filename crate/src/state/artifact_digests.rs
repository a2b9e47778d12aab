//! Digests of an artifact: a model, an adapter or a state dict as its files contain it.

use std::collections::BTreeMap;

use super::digest::{assignment_digest, bundle_digest, optimizer_digest, state_digest};
use super::group::ModelStateGroupAssignment;
use super::manifest::StatedDigests;
use super::tensor_manifest::Identity;
use crate::error::Result;
use crate::formats::Digest;

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
