//! The digest of the weights of a base (crate/FORMATS.md, "Digests"), for adapters that state it.

use std::collections::BTreeMap;

use crate::bundle::counted::Counted;
use crate::bundle::digest::{Digest, weights_digest};
use crate::bundle::tensors::Bundle;
use crate::error::Result;

/// Reads all tensors. Their bytes count in Hugging Face's layout, as every container of the same weights has them.
pub(super) fn base_digest(bundle: &Bundle) -> Result<Digest> {
    let mut leaves = BTreeMap::new();
    for entry in bundle.entries.values() {
        let counted = Counted::of_entry(entry);
        let payload = counted.payload_in(bundle.files[entry.source].as_ref(), entry.begin, entry.end.unwrap_or(entry.begin))?;
        leaves.insert(counted.key.clone(), counted.leaf(payload));
    }
    Ok(weights_digest(&leaves))
}
