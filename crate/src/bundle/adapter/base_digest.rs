//! Compares a base with the one that an adapter was trained on.

use std::borrow::Cow;
use std::rc::Rc;

use super::config::{BASE_NAMES, LoraConfig};
use crate::bundle::files::MAX_DOCUMENT_BYTES;
use crate::bundle::refusals::refused;
use crate::bundle::tensors::Bundle;
use crate::error::{Result, word};
use crate::formats::{ByteSource, SafetensorsFile, base_name, json_document, read_document};

/// Metadata key of the weights that states the digest of the base that they were trained on.
pub(crate) const BASE_DIGEST: &str = "tabtune.base_weights_digest";
/// Name of the document of a checkpoint, whose folder is that of an adapter too.
const CHECKPOINT: &str = "checkpoint.json";

/// Compares the base with the one that an adapter states, for which all of the base is read: a base other than that of its configuration is
/// refused; one other than it was trained on is a warning, and is not the one that its configuration names. `files` are the adapter's other
/// files.
pub(super) fn check_base(
    bundle: &mut Bundle,
    config: &mut LoraConfig,
    file: &SafetensorsFile,
    files: &[Rc<dyn ByteSource>],
    artifact: &str,
) -> Result<()> {
    let trained_beside = match file.metadata.get(BASE_DIGEST) {
        Some(stated) => Some(stated),
        None => in_checkpoint(files)?,
    };
    if config.base_weights_digest.is_none() && trained_beside.is_none() {
        return Ok(());
    }
    let found = bundle.base_digest()?;
    bundle.base.weights_digest = Some(found);
    if let Some(stated) = config.base_weights_digest.filter(|stated| *stated != found) {
        return Err(refused(
            word!("adapter.base.mismatch"),
            artifact,
            "base_weights_digest",
        )
        .expected(stated)
        .found(found)
        .into());
    }
    let found = found.to_string();
    if let Some(stated) = trained_beside.filter(|stated| *stated != found) {
        let start = |digest: &str| digest.chars().take(8).collect::<String>();
        let subject = format!("{}…, and here {}…", start(&stated), start(&found));
        bundle.warn(word!("adapter.base.differs"), &subject);
        // A new adapter keeps the other fields.
        for key in BASE_NAMES {
            config.unknown.remove(key);
        }
    }
    Ok(())
}

/// Finds the digest of the base that the checkpoint among these files records. Any other document of its name records none.
fn in_checkpoint(files: &[Rc<dyn ByteSource>]) -> Result<Option<String>> {
    let mut checkpoints = files
        .iter()
        .filter(|file| base_name(file.name()) == CHECKPOINT && file.len() <= MAX_DOCUMENT_BYTES);
    let Some(file) = checkpoints.next() else {
        return Ok(None);
    };
    let bytes = read_document(file, MAX_DOCUMENT_BYTES)?;
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    let document = json_document(text).ok();
    let digest = document.and_then(|json| json.get("base")?.get("weights_digest")?.text());
    Ok(digest.map(Cow::into_owned))
}
