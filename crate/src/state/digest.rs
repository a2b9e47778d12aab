//! Digests of tensors, groups, tokenizers and documents (crate/FORMATS.md, "Digests"). No device, container, file or order of a file enters
//! the digest of a model.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{Identity, ModelStateGroupAssignment, TokenizerRecord};
use crate::error::{Error, Fault, Refusal, Result, word};
pub use crate::formats::{Digest, Hasher};

impl Hasher {
    /// Its length in bytes (u64), then the text.
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

/// The text of RFC 8785 of `value`: one text for equal documents, whatever the order of their keys. Its numbers are finite, as JSON wants them.
///
/// # Errors
/// `config.invalid` for what is no JSON.
pub fn canonical(value: &impl Serialize) -> Result<String> {
    let wrong = |error: serde_json::Error| Error::InvalidConfig(vec![Fault::new("document", "JSON with finite numbers", error)]);
    serde_json_canonicalizer::to_string(value).map_err(wrong)
}

/// The digest of one tensor; `payload` is that of its stored bytes.
pub fn leaf(key: &str, dtype: &str, shape: &[u64], payload: Digest) -> Digest {
    let mut hasher = Hasher::tagged(0, "tabtune/tensor/1");
    hasher.text(key);
    hasher.text(dtype);
    // A shape has at most 8 dimensions.
    hasher.update(&(shape.len() as u32).to_le_bytes());
    shape.iter().for_each(|dim| hasher.update(&dim.to_le_bytes()));
    hasher.update(payload.as_bytes());
    hasher.finish()
}

fn leaves(tag: u8, label: &str, leaves: &BTreeMap<String, Digest>) -> Digest {
    let mut hasher = Hasher::tagged(tag, label);
    hasher.count(leaves.len());
    leaves.values().for_each(|leaf| hasher.update(leaf.as_bytes()));
    hasher.finish()
}

/// The digest of parameters and buffers, given the leaf of each by key.
pub fn weights_digest(of: &BTreeMap<String, Digest>) -> Digest {
    leaves(1, "tabtune/weights/1", of)
}

/// The digest of state tensors, given the leaf of each by key.
pub fn optimizer_digest(of: &BTreeMap<String, Digest>) -> Digest {
    leaves(2, "tabtune/optimizer/1", of)
}

/// The digest of groups in their order. Where their tensors lie does not count.
pub fn assignment_digest(groups: &[ModelStateGroupAssignment]) -> Result<Digest> {
    let without =
        |group: &ModelStateGroupAssignment| ModelStateGroupAssignment { residency_policy: None, residency: None, ..group.clone() };
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

/// A hyperparameter that is NaN or infinite, with its group.
fn not_finite(groups: &[ModelStateGroupAssignment]) -> Option<(&str, &str)> {
    let all = groups.iter().flat_map(|group| group.optimizer.hyperparameters.iter().map(move |(name, value)| (group, name, value)));
    all.filter(|(.., value)| !value.is_finite()).map(|(group, name, _)| (group.group_id.as_str(), name.as_str())).next()
}

/// The digest of a state: weights, state tensors and groups, each that of an empty set where there are none.
pub fn state_digest(weights: Digest, optimizer: Digest, assignment: Digest) -> Digest {
    let mut hasher = Hasher::tagged(7, "tabtune/state/1");
    [weights, optimizer, assignment].iter().for_each(|part| hasher.update(part.as_bytes()));
    hasher.finish()
}

/// The digest of a tokenizer: SHA-256 of each of its assets by name, and its record.
pub fn tokenizer_digest(assets: &BTreeMap<String, Digest>, record: &TokenizerRecord) -> Result<Digest> {
    let mut hasher = Hasher::tagged(4, "tabtune/tokenizer/1");
    hasher.count(assets.len());
    for (name, digest) in assets {
        hasher.text(name);
        hasher.update(digest.as_bytes());
    }
    hasher.text(&canonical(record)?);
    Ok(hasher.finish())
}

/// The digest of chat templates by name.
pub fn template_digest(templates: &BTreeMap<String, String>) -> Digest {
    let mut hasher = Hasher::tagged(5, "tabtune/template/1");
    hasher.count(templates.len());
    for (name, text) in templates {
        hasher.text(name);
        hasher.text(text);
    }
    hasher.finish()
}

/// The digests that a bundle has; absent parts have none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BundleParts {
    /// Of parameters and buffers.
    pub weights: Option<Digest>,
    /// Of state tensors.
    pub optimizer: Option<Digest>,
    /// Of groups.
    pub assignment: Option<Digest>,
    /// Of the tokenizer.
    pub tokenizer: Option<Digest>,
    /// Of the chat templates.
    pub template: Option<Digest>,
}

/// The digest of a bundle.
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
    for part in [parts.weights, parts.optimizer, parts.assignment, parts.tokenizer, parts.template] {
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

/// Documents with a digest of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentKind {
    /// The plan of an import.
    Plan,
    /// A compatibility contract.
    Contract,
    /// A receipt.
    Receipt,
}

/// The digest of a document, given without the field that holds it (a receipt also without time and device).
pub fn document_digest(kind: DocumentKind, document: &Value) -> Result<Digest> {
    let (tag, label) = match kind {
        DocumentKind::Plan => (8, "tabtune/plan/1"),
        DocumentKind::Contract => (9, "tabtune/compat/1"),
        DocumentKind::Receipt => (10, "tabtune/receipt/1"),
    };
    let mut hasher = Hasher::tagged(tag, label);
    hasher.text(&canonical(document)?);
    Ok(hasher.finish())
}
