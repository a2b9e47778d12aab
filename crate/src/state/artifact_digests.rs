//! Digests of an artifact: a model, an adapter or a state dict as its files have it.

use std::collections::BTreeMap;

use super::digest::{BundleParts, assignment_digest, bundle_digest, optimizer_digest, state_digest};
use super::group::ModelStateGroupAssignment;
use super::manifest::StatedDigests;
use super::tensor::Identity;
use crate::error::Result;
use crate::formats::Digest;

/// Identity of an artifact and the digests that are known without reading its tensors.
#[derive(Debug, Clone, Default)]
pub(crate) struct ArtifactDigests {
    /// What it is a state of, as an import of it says.
    pub(crate) identity: Identity,
    /// Of weights and state tensors, where they are known without summing them.
    pub(crate) weights: Option<Digest>,
    pub(crate) optimizer: Option<Digest>,
    /// Of the groups, if it has some.
    pub(crate) assignment: Option<Digest>,
    /// Of the tokenizer, if it has one that can be read.
    pub(crate) tokenizer: Option<Digest>,
    /// Of the chat templates, if it has some.
    pub(crate) template: Option<Digest>,
}

impl ArtifactDigests {
    /// An artifact whose manifest has this identity and these groups.
    pub(crate) fn of_manifest(identity: &Identity, groups: &[ModelStateGroupAssignment]) -> Result<Self> {
        let assignment = if groups.is_empty() { None } else { Some(assignment_digest(groups)?) };
        Ok(Self { identity: identity.clone(), assignment, ..Self::default() })
    }

    /// The same with the digests of the tokenizer and of the chat templates. A tokenizer that is refused leaves the tensors usable: it has
    /// no digest.
    pub(crate) fn with(mut self, [tokenizer, template]: [Option<Digest>; 2]) -> Self {
        (self.tokenizer, self.template) = (tokenizer, template);
        self
    }

    /// The digests of the artifact. Those of the whole state and of the bundle follow from the others.
    pub(crate) fn digests(&self, weights: Option<Digest>, optimizer: Option<Digest>) -> Result<StatedDigests> {
        let &Self { assignment, tokenizer, template, .. } = self;
        let (mut state, mut bundle) = (None, None);
        if let Some(weights) = weights {
            let none = BTreeMap::new();
            let groups = assignment.map_or_else(|| assignment_digest(&[]), Ok)?;
            state = Some(state_digest(weights, optimizer.unwrap_or_else(|| optimizer_digest(&none)), groups));
            bundle =
                Some(bundle_digest(&self.identity, &BundleParts { weights: Some(weights), optimizer, assignment, tokenizer, template }));
        }
        Ok(StatedDigests { weights, optimizer, assignment, state, tokenizer, template, bundle })
    }
}
