//! Reads a state dict from one JSON document (crate/FORMATS.md, "JSON state dict").

use crate::bundle::read_state_json;
use crate::error::{Refusal, Result, word};
use crate::formats::{ByteSource, base_name, known_mark};
use crate::state::{Input, OpenedFile, OpenedState, SourceWord};

/// Reads a JSON state dict of at most 64 MiB, and checks every tensor, its manifest and its stated digests. Without a manifest it is a plain
/// state dict: parameters without groups, whose paths follow from their names.
///
/// # Errors
/// `json.*`, `manifest.*` and `digest.mismatch`; `format.unsupported` for a Python pickle.
pub fn open_json(source: &dyn ByteSource) -> Result<OpenedState> {
    if matches!(known_mark(source), Some("zip" | "pickle")) {
        let hint =
            "Python pickles are never loaded; save the model as safetensors where it was made";
        return Err(Refusal::new(word!("format.unsupported"))
            .of(source.name())
            .found("pickle")
            .hint(hint)
            .into());
    }
    let read = read_state_json(source)?;
    let (identity, groups) = read
        .manifest
        .as_ref()
        .map(|manifest| (manifest.identity.clone(), manifest.groups.clone()))
        .unwrap_or_default();
    let tensors = read.tensors.into_iter();
    Ok(OpenedState {
        tensors: tensors
            .map(|tensor| (tensor.name.clone(), Box::new(tensor)))
            .collect(),
        groups,
        manifest: read.manifest,
        stated: read.stated,
        checks: Some(read.checks),
        files: vec![OpenedFile {
            header_sha256: read.sha256,
            bytes: source.len(),
        }],
        inputs: vec![Input::summed(source, "weights", read.sha256)],
        ..OpenedState::new(
            identity,
            SourceWord::TorchStateDictJson,
            base_name(source.name()),
        )
    })
}
