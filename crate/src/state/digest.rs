//! Digests of tensors, groups, tokenizers and documents (crate/FORMATS.md, "Digests"). The digest of a model does not depend on a device, a
//! container, a file or the order of a file.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{Identity, ModelStateGroupAssignment, TokenizerRecord};
use crate::error::{Error, Fault, Refusal, Result, word};
pub use crate::formats::{Digest, Hasher};

impl Hasher {
    /// Adds the length of a text in bytes (u64), then the text.
    fn text(&mut self, text: &str) {
        self.update(&(text.len() as u64).to_le_bytes());
        self.update(text.as_bytes());
    }

    fn tagged(tag: u8, label: &str) -> Self {
        let mut hasher = Self::new();
        hasher.update(&[tag]);
        hasher.text(label);
        hasher
    }

    fn count(&mut self, count: usize) {
        self.update(&(count as u64).to_le_bytes());
    }
}

/// Serializes `value` as the canonical JSON of RFC 8785: one text for equal documents, whatever the order of their keys. Numbers must be
/// finite, as JSON requires.
///
/// # Errors
/// `config.invalid` for a value that is no JSON.
pub fn canonical(value: &impl Serialize) -> Result<String> {
    let wrong = |error: serde_json::Error| {
        Error::InvalidConfig(vec![Fault::new(
            "document",
            "JSON with finite numbers",
            error,
        )])
    };
    serde_json_canonicalizer::to_string(value).map_err(wrong)
}

/// Computes the digest of one tensor; `payload` is the digest of its stored bytes.
pub fn leaf(key: &str, dtype: &str, shape: &[u64], payload: Digest) -> Digest {
    let mut hasher = Hasher::tagged(0, "tabtune/tensor/1");
    hasher.text(key);
    hasher.text(dtype);
    // A shape has at most 8 dimensions.
    hasher.update(&(shape.len() as u32).to_le_bytes());
    shape
        .iter()
        .for_each(|dim| hasher.update(&dim.to_le_bytes()));
    hasher.update(payload.as_bytes());
    hasher.finish()
}

fn leaves(tag: u8, label: &str, leaves: &BTreeMap<String, Digest>) -> Digest {
    let mut hasher = Hasher::tagged(tag, label);
    hasher.count(leaves.len());
    leaves
        .values()
        .for_each(|leaf| hasher.update(leaf.as_bytes()));
    hasher.finish()
}

/// Computes the digest of parameters and buffers, given the leaf of each by key.
pub fn weights_digest(of: &BTreeMap<String, Digest>) -> Digest {
    leaves(1, "tabtune/weights/1", of)
}

/// Computes the digest of state tensors, given the leaf of each by key.
pub fn optimizer_digest(of: &BTreeMap<String, Digest>) -> Digest {
    leaves(2, "tabtune/optimizer/1", of)
}

/// Computes the digest of groups in their order. Where their tensors reside does not count.
///
/// # Errors
/// `state.group.hyperparameter` for a value that is NaN or infinite; `config.invalid` for a group that is no JSON.
pub fn assignment_digest(groups: &[ModelStateGroupAssignment]) -> Result<Digest> {
    let without = |group: &ModelStateGroupAssignment| ModelStateGroupAssignment {
        residency_policy: None,
        residency: None,
        ..group.clone()
    };
    let kept: Vec<_> = groups.iter().map(without).collect();
    // JSON would have null in its place.
    if let Some((group, name)) = not_finite(groups) {
        return Err(Refusal::new(word!("state.group.hyperparameter"))
            .subject(&format!("{group}/{name}"))
            .expected("a finite number")
            .into());
    }
    let mut hasher = Hasher::tagged(3, "tabtune/assignment/1");
    hasher.text(&canonical(&kept)?);
    Ok(hasher.finish())
}

/// Returns the first hyperparameter that is NaN or infinite, with its group.
fn not_finite(groups: &[ModelStateGroupAssignment]) -> Option<(&str, &str)> {
    let all = groups.iter().flat_map(|group| {
        group
            .optimizer
            .hyperparameters
            .iter()
            .map(move |(name, value)| (group, name, value))
    });
    all.filter(|(.., value)| !value.is_finite())
        .map(|(group, name, _)| (group.group_id.as_str(), name.as_str()))
        .next()
}

/// Computes the digest of a state: weights, state tensors and groups, each the digest of an empty set where there are none.
pub fn state_digest(weights: Digest, optimizer: Digest, assignment: Digest) -> Digest {
    let mut hasher = Hasher::tagged(7, "tabtune/state/1");
    [weights, optimizer, assignment]
        .iter()
        .for_each(|part| hasher.update(part.as_bytes()));
    hasher.finish()
}

/// Computes the digest of a tokenizer: SHA-256 of each of its assets by name, and its record.
///
/// # Errors
/// `config.invalid` for a record that is no JSON.
pub fn tokenizer_digest(
    assets: &BTreeMap<String, Digest>,
    record: &TokenizerRecord,
) -> Result<Digest> {
    let mut hasher = Hasher::tagged(4, "tabtune/tokenizer/1");
    hasher.count(assets.len());
    for (name, digest) in assets {
        hasher.text(name);
        hasher.update(digest.as_bytes());
    }
    hasher.text(&canonical(record)?);
    Ok(hasher.finish())
}

/// Computes the digest of chat templates by name.
pub fn template_digest(templates: &BTreeMap<String, String>) -> Digest {
    let mut hasher = Hasher::tagged(5, "tabtune/template/1");
    hasher.count(templates.len());
    for (name, text) in templates {
        hasher.text(name);
        hasher.text(text);
    }
    hasher.finish()
}

/// The digests of the parts of a bundle; absent parts have none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BundleParts {
    /// Digest of parameters and buffers.
    pub weights: Option<Digest>,
    /// Digest of state tensors.
    pub optimizer: Option<Digest>,
    /// Digest of groups.
    pub assignment: Option<Digest>,
    /// Digest of the tokenizer.
    pub tokenizer: Option<Digest>,
    /// Digest of the chat templates.
    pub template: Option<Digest>,
}

/// Computes the digest of a bundle.
pub fn bundle_digest(identity: &Identity, parts: &BundleParts) -> Digest {
    let mut hasher = Hasher::tagged(6, "tabtune/bundle/1");
    hasher.text(&identity.model_family);
    hasher.text(&identity.revision);
    hasher.text(&identity.checkpoint_family);
    match &identity.checkpoint_ref {
        Some(text) => {
            hasher.update(&[1]);
            hasher.text(text);
        }
        None => hasher.update(&[0]),
    }
    for part in [
        parts.weights,
        parts.optimizer,
        parts.assignment,
        parts.tokenizer,
        parts.template,
    ] {
        match part {
            Some(digest) => {
                hasher.update(&[1]);
                hasher.update(digest.as_bytes());
            }
            None => hasher.update(&[0]),
        }
    }
    hasher.finish()
}

/// Kind of a document that has a digest of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentKind {
    /// The plan of an import.
    Plan,
    /// A compatibility contract.
    Contract,
    /// A receipt.
    Receipt,
}

/// Computes the digest of a document, given without the field that holds it (a receipt also without time and device).
///
/// # Errors
/// `config.invalid` for a document that is no JSON.
pub(crate) fn document_digest(kind: DocumentKind, document: &Value) -> Result<Digest> {
    let (tag, label) = match kind {
        DocumentKind::Plan => (8, "tabtune/plan/1"),
        DocumentKind::Contract => (9, "tabtune/compat/1"),
        DocumentKind::Receipt => (10, "tabtune/receipt/1"),
    };
    let mut hasher = Hasher::tagged(tag, label);
    hasher.text(&canonical(document)?);
    Ok(hasher.finish())
}
