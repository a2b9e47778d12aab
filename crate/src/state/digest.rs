//! Digests of tensors, groups, tokenizers and documents (crate/FORMATS.md, "Digests"). The digest of a model does not depend on a device, a
//! container, a file or the order of a file.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{Identity, ModelStateGroupAssignment, StatedDigests, TokenizerRecord};
use crate::error::{Error, Fault, Refusal, Result, word};
pub use crate::formats::{Digest, Hasher};

impl Hasher {
    /// Adds the length of a text in bytes (u64), then the text.
    fn text(&mut self, text: &str) {
        self.count(text.len());
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

    /// Adds a byte that states whether a part follows.
    fn presence(&mut self, is_there: bool) {
        self.update(&[u8::from(is_there)]);
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
    for group in groups {
        let mut numbers = group.optimizer.hyperparameters.iter();
        // JSON would have null in its place.
        if let Some((name, _)) = numbers.find(|(_, value)| !value.is_finite()) {
            return Err(Refusal::new(word!("state.group.hyperparameter"))
                .subject(&format!("{}/{name}", group.group_id))
                .expected("a finite number")
                .into());
        }
    }
    let kept: Vec<_> = groups.iter().map(without).collect();
    let mut hasher = Hasher::tagged(3, "tabtune/assignment/1");
    hasher.text(&canonical(&kept)?);
    Ok(hasher.finish())
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

/// Computes the digest of a bundle, given those of its parts; absent parts have none, and those of the state and of the bundle do not count.
pub fn bundle_digest(identity: &Identity, parts: &StatedDigests) -> Digest {
    let mut hasher = Hasher::tagged(6, "tabtune/bundle/1");
    hasher.text(&identity.model_family);
    hasher.text(&identity.revision);
    hasher.text(&identity.checkpoint_family);
    hasher.presence(identity.checkpoint_ref.is_some());
    if let Some(text) = &identity.checkpoint_ref {
        hasher.text(text);
    }
    for part in [
        parts.weights,
        parts.optimizer,
        parts.assignment,
        parts.tokenizer,
        parts.template,
    ] {
        hasher.presence(part.is_some());
        if let Some(digest) = part {
            hasher.update(digest.as_bytes());
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
