//! Target: manifests of a checkpoint, of shards, and in the metadata of a safetensors file.

use std::rc::Rc;

use tabtune::checkpoint::{Checkpoint, CheckpointBase, MANIFEST as MANIFEST_NAME};
use tabtune::formats::{ByteSource, MemorySource, safetensors_header};
use tabtune::portable::open_safetensors;
use tabtune::state::{OpenedState, StateManifest, TensorRecord};

use super::super::mutation::mutated_json;
use super::{Target, golden};
use crate::portable::manifest::{manifest, whole};

const JSON_WORDS: [&str; 24] = [
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"\"",
    "null",
    "true",
    "-0",
    "1e999",
    "0.5",
    "18446744073709551616",
    "\\u0000",
    "\\ud800",
    "\\uD83D\\uDE00",
    "\"\\n\"",
    "[[[[[[[[",
    "]]]]]]]]",
    " ",
    "\u{202e}",
    "\"a\":{}",
    "\"__proto__\":1,",
    "[0,0,0,0,0,0,0,0,0,0]",
];

/// Returns the first words of an error: the path of the field.
fn told<T>(result: tabtune::Result<T>) -> String {
    let words = |error: tabtune::Error| {
        format!(
            "{} {}",
            error.code(),
            error.to_string().chars().take(72).collect::<String>()
        )
    };
    result.map_or_else(words, |_| "ok".into())
}

/// Makes the weights of [`whole`], with the manifest in their metadata if there is one.
fn weights(manifest: Option<&str>) -> Rc<dyn ByteSource> {
    let tensors = whole()
        .tensors
        .into_iter()
        .filter(|(_, tensor)| tensor.file == "model.safetensors");
    let shape = |tensor: &TensorRecord| tensor.shape.iter().map(|&dim| dim as usize).collect();
    let entries: Vec<(String, String, Vec<usize>)> = tensors
        .map(|(key, of)| (key, of.dtype.clone(), shape(&of)))
        .collect();
    let entries: Vec<_> = entries
        .iter()
        .map(|(key, dtype, shape)| (key.clone(), dtype.as_str(), shape.clone()))
        .collect();
    let metadata = manifest
        .map(|text| ("tabtune.manifest".to_string(), text.to_string()))
        .into_iter()
        .collect();
    let (mut bytes, spans) = safetensors_header(&entries, &metadata).unwrap();
    bytes.resize(
        bytes.len() + spans.last().map_or(0, |span| span.1 as usize),
        0,
    );
    Rc::new(MemorySource::new("model.safetensors", bytes))
}

/// Opens the same bytes as `checkpoint.json`, whose files are absent, as the manifest in the metadata of weights, and as the file next to them.
fn manifest_answer(file: &[u8]) -> String {
    let checkpoint: Rc<dyn ByteSource> = Rc::new(MemorySource::new(MANIFEST_NAME, file));
    let checkpoint = told(Checkpoint::open_with(
        vec![checkpoint],
        CheckpointBase::Absent,
        true,
    ));
    let Ok(text) = std::str::from_utf8(file) else {
        return checkpoint;
    };
    let read = StateManifest::read(text, "f");
    if let Ok(manifest) = &read {
        let again = StateManifest::read(&manifest.to_text().unwrap(), "f").unwrap();
        assert!(again == *manifest, "written and read again it is another");
    }
    let document: Rc<dyn ByteSource> = Rc::new(MemorySource::new("tabtune.manifest.json", file));
    let codes = |result: tabtune::Result<_>| {
        result.map_or_else(|error| error.code(), |_: OpenedState| "ok")
    };
    let (inside, beside) = (
        codes(open_safetensors(vec![weights(Some(text))])),
        codes(open_safetensors(vec![weights(None), document])),
    );
    // A file that is not JSON at all is reported as such.
    let other = beside == "format.mismatch" && inside == "manifest.json";
    assert!(
        inside == beside || other,
        "{inside} in the metadata, {beside} beside the weights"
    );
    format!("{checkpoint} | {} | {inside}", told(read))
}

fn manifest_seeds() -> Vec<Vec<u8>> {
    let written = golden("checkpoints/v1/checkpoint.json");
    let document: serde_json::Value = serde_json::from_slice(&written).unwrap();
    let terse = serde_json::to_vec(&document).unwrap();
    let (state, plain) = (
        whole().to_text().unwrap().into_bytes(),
        manifest().to_text().unwrap().into_bytes(),
    );
    vec![written, terse, state, plain, b"{}".to_vec()]
}

pub const MANIFEST: Target = Target {
    name: "manifest",
    seeds: manifest_seeds,
    words: &JSON_WORDS,
    change: mutated_json,
    answer: manifest_answer,
    answers: 150,
};
