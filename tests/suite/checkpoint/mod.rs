//! Checkpoints: error codes of refused files, changes that a resume allows, and their bytes piece by piece.

mod accounts;
mod changes;
mod golden;
mod pieces;
mod words;

use std::rc::Rc;

use serde_json::Value;
use tabtune::Error;
use tabtune::checkpoint::{Checkpoint, MANIFEST, pieces_of, sha256};
use tabtune::formats::{ByteSource, MemorySource};

use crate::resume::Files;

/// Opens the files unchanged.
pub fn opened(files: Files) -> Result<Checkpoint, Error> {
    let sources = files
        .into_iter()
        .map(|(name, bytes)| Rc::new(MemorySource::new(name, bytes)) as Rc<dyn ByteSource>);
    Checkpoint::open(sources.collect(), None)
}

/// Returns the file called `name`.
pub fn file<'a>(files: &'a mut Files, name: &str) -> &'a mut Vec<u8> {
    &mut files.iter_mut().find(|(own, _)| own == name).unwrap().1
}

/// Changes `checkpoint.json` with `edit`.
pub fn edited(mut files: Files, edit: impl FnOnce(&mut Value)) -> Files {
    let manifest = file(&mut files, MANIFEST);
    let mut json = serde_json::from_slice(manifest).unwrap();
    edit(&mut json);
    *manifest = json.to_string().into_bytes();
    files
}

/// Replaces the bytes of a file of tensors, and updates its length, digests and tensors in the manifest.
pub fn replaced(mut files: Files, name: &str, bytes: Vec<u8>) -> Files {
    let digests: Vec<String> = pieces_of(bytes.len() as u64)
        .map(|(at, len)| sha256(&bytes[at as usize..(at + len) as usize]))
        .collect();
    let len = bytes.len();
    let header = safetensors_of(&bytes);
    *file(&mut files, name) = bytes;
    edited(files, |json| {
        let record = json["files"]
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .find(|record| record["name"] == name)
            .unwrap();
        (record["bytes"], record["pieces"]) = (len.into(), digests.into());
        let tensors = json["tensors"].as_object_mut().unwrap();
        tensors.retain(|_, tensor| tensor["file"] != name);
        tensors.extend(header.into_iter().map(|(key, dtype, shape)| {
            let (path, role) = match key.rsplit_once(':') {
                Some((parameter, word)) => (format!("{parameter}.{word}"), format!("state:{word}")),
                None => (key.clone(), "parameter".to_string()),
            };
            let path: Vec<&str> = path.split('.').collect();
            let tensor = serde_json::json!({"path": path, "role": role, "dtype": dtype, "shape": shape, "file": name});
            (key, tensor)
        }));
    })
}

/// Returns name, dtype and shape of each tensor of a safetensors file, read from its header alone.
pub fn safetensors_of(bytes: &[u8]) -> Vec<(String, String, Value)> {
    let len = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..8 + len]).unwrap();
    let tensors = header
        .as_object()
        .unwrap()
        .iter()
        .filter(|(key, _)| *key != "__metadata__");
    tensors
        .map(|(key, tensor)| {
            (
                key.clone(),
                tensor["dtype"].as_str().unwrap().to_string(),
                tensor["shape"].clone(),
            )
        })
        .collect()
}
