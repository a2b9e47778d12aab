//! Opens the weights of a Hugging Face folder: one safetensors file, shards with their index, or a JSON state dict.

use std::rc::Rc;

use super::files::{CONFIG, Files, find, named, other_weights};
use super::index::{Shards, open_index};
use super::kind::STATE_JSON;
use super::state_json::read_state_json;
use crate::error::{Refusal, Result, Warning, word};
use crate::formats::{ByteSource, SafetensorsFile, base_name};
use crate::state::{BaseFile, Reordering, Tensor};

/// File that lists the shards and the tensors in them.
pub(super) const INDEX: &str = "model.safetensors.index.json";

/// Weights under the names in their files.
pub(super) struct FolderWeights {
    /// Parameters and buffers.
    pub(super) tensors: Vec<Tensor>,
    /// Positions of their files.
    pub(super) used: Vec<usize>,
    /// Checksums of these files.
    pub(super) sums: Vec<BaseFile>,
    /// Unusual but allowed properties.
    pub(super) warnings: Vec<Warning>,
}

impl FolderWeights {
    /// Opens the weights among `files`; a JSON state dict counts where there is no safetensors file.
    pub(super) fn open(files: &Files) -> Result<Self> {
        let documents = named(files, STATE_JSON);
        match documents.first() {
            Some(&at) if named(files, ".safetensors").is_empty() => Self::of_document(files, at),
            _ => Self::of_safetensors(files),
        }
    }

    fn of_safetensors(files: &Files) -> Result<Self> {
        let (shards, warning) = open_shards(files)?;
        let mut weights = Self {
            tensors: Vec::new(),
            used: shards.iter().map(|(at, _)| *at).collect(),
            sums: Vec::new(),
            warnings: Vec::new(),
        };
        for (at, shard) in shards {
            let file = &files[at];
            weights.sums.push(BaseFile::new(file, shard.header_sha256));
            weights.warnings.extend(shard.warnings);
            for tensor in &shard.tensors {
                let name = tensor.name.clone();
                let tensor = Tensor::of_file(name, tensor, Reordering::Same, file)?;
                weights.tensors.push(tensor);
            }
        }
        weights.warnings.extend(warning);
        Ok(weights)
    }

    fn of_document(files: &Files, at: usize) -> Result<Self> {
        let read = read_state_json(&files[at])?;
        let tensors = read.tensors.into_iter();
        Ok(Self {
            tensors: tensors.filter(|tensor| !tensor.is_state()).collect(),
            used: vec![at],
            sums: vec![BaseFile::new(&files[at], read.sha256)],
            warnings: Vec::new(),
        })
    }
}

/// The weight files of a Hugging Face folder, which are those of its index, if it has one.
///
/// # Errors
/// `bundle.weights.missing`, `index.*` and the errors of [`SafetensorsFile::open`].
pub(crate) fn weight_files(files: &Files) -> Result<Files> {
    let (shards, _) = open_shards(files)?;
    let file = |(at, _): &(usize, SafetensorsFile)| Rc::clone(&files[*at]);
    Ok(shards.iter().map(file).collect())
}

/// Opens the headers of the safetensors files, with a warning about their index.
fn open_shards(files: &Files) -> Result<(Shards, Option<Warning>)> {
    let plain: Vec<usize> = (0..files.len())
        .filter(|&at| base_name(files[at].name()).ends_with(".safetensors"))
        .collect();
    let index = find(files, INDEX);
    let single = find(files, "model.safetensors").or(match plain.as_slice() {
        [only] if index.is_none() => Some(*only),
        _ => None,
    });
    if let Some(at) = single {
        return Ok((vec![(at, SafetensorsFile::open(&files[at])?)], None));
    }
    if let Some(at) = index {
        return open_index(&files[at], files);
    }
    let expected = if plain.is_empty() {
        "model.safetensors, or shards and their index"
    } else {
        "model.safetensors.index.json, the index of the shards"
    };
    let absent = Refusal::new(word!("bundle.weights.missing")).of(CONFIG);
    Err(other_weights(files).unwrap_or_else(|| absent.expected(expected).into()))
}
