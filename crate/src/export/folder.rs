//! Writes a model as a Hugging Face folder.

use std::collections::BTreeMap;

use serde_json::json;

use super::card::card;
use super::choice::ExportChoice;
use super::format::Format;
use super::gguf_types::elements;
use super::merged::{merged, opened_merged};
use super::options::{ExportDtype, ExportOptions};
use super::source::ExportSource;
use super::{ExportFormat, check_kind};
use crate::bundle::{Contents, FileStream, format_pt, refuse_blocks};
use crate::error::{Refusal, Result, word};
use crate::formats::TensorType;
use crate::state::{
    ArtifactDigests, MANIFEST_FILE, MANIFEST_KEY, MODEL_FILE, ModelStateTensorManifest,
    OPTIMIZER_FILE, StateManifest, Tensor, TensorRecord, byte_len, canonical,
};

/// Default maximum number of bytes of tensors in one file of weights, which every browser and file system accepts.
pub const SHARD_BYTES: u64 = 1_900_000_000;

const INDEX: &str = "model.safetensors.index.json";

/// Writes the files of a folder that `transformers` and tabtune load: the weights in one file or, beyond `shard_bytes`, in shards that are
/// filled in the order of the names, with their index; on request the optimizer's state; configuration, ids that end a text, and tokenizer,
/// byte for byte as they were read where nothing changes; a model card; last the receipt, without which the folder is incomplete.
///
/// # Errors
/// `export.safetensors.quantised` for blocks that would be written as they are stored, `bundle.config.json` for a configuration that is not
/// JSON. While the stream is read, `export.overflow` for finite values beyond their dtype.
pub fn export_folder(source: &ExportSource, options: &ExportOptions) -> Result<FileStream> {
    check_kind(source, ExportFormat::Safetensors)?;
    let to = options.dtype.tensor_type();
    if to.is_none() {
        refuse_blocks(&source.weights.tensors)?;
    }
    let mut stream = FileStream::summed();
    push_weights(&mut stream, source, to, options)?;
    if options.optimizer && !source.state.is_empty() {
        let (state, contents) = (source.state.clone(), Contents::StateOfWeights);
        stream.push_safetensors_as(OPTIMIZER_FILE, state, None, contents, &format_pt(None))?;
    }
    let dtype = dtype_word(&source.weights.tensors, to);
    let documents = source
        .assets
        .folder_documents(&source.weights.config, dtype)?;
    for (name, bytes) in &documents {
        stream.push_bytes(name, bytes.clone());
    }
    let manifest = options
        .manifest
        .then(|| ArtifactDigests::of_manifest(&source.identity, &source.groups))
        .transpose()?;
    stream.know(ArtifactDigests::of_folder(
        &documents.into_iter().collect(),
        manifest,
    ));
    let card = card(source, options, stream.changes());
    stream.push_bytes("README.md", card.into_bytes());
    options.finish(stream, source.draft())
}

/// A Hugging Face folder.
pub(super) const FORMAT: Format = Format {
    word: "safetensors",
    about: "Hugging Face folder, safetensors",
    ending: "",
    is_of_adapter: false,
    own_options: &["base", "dtype", "manifest", "optimizer", "shard_bytes"],
    export: |source, base_files, options| {
        Box::pin(async move {
            let merged = merged(source, base_files, options).await?;
            export_folder(&merged.source, &merged.options)
        })
    },
    choices,
};

/// As stored, and where that is refused, with a dtype that is not.
fn choices(source: &ExportSource) -> Vec<ExportChoice> {
    let format = ExportFormat::Safetensors;
    if source.adapter_settings.is_some() {
        return vec![ExportChoice::merged(format, None, None)];
    }
    let mut options = ExportOptions::default();
    let folder = match opened_merged(source, &options) {
        Ok(Some(merged)) => export_folder(&merged.source, &merged.options),
        _ => export_folder(source, &options),
    };
    let refused = folder.is_err();
    let mut choices = vec![ExportChoice::planned(format, None, folder)];
    if refused {
        options.dtype = ExportDtype::F32;
        let folder = export_folder(source, &options);
        choices.push(ExportChoice::planned(format, Some("f32"), folder));
    }
    choices
}

/// Size of a tensor in its file.
fn bytes_of(tensor: &Tensor, to: Option<TensorType>) -> Result<u64> {
    let (dtype, shape) = (tensor.dtype_as(to), &tensor.shape);
    let too_large = || {
        Refusal::new(word!("export.tensor.size"))
            .of("safetensors")
            .subject(&tensor.name)
            .found(format!("{dtype} {shape:?}"))
    };
    Ok(byte_len(&dtype, shape).ok_or_else(too_large)?)
}

/// Distributes the tensors to shards of at most `limit` bytes, in the order of their names.
fn shards_of(
    tensors: &[Tensor],
    to: Option<TensorType>,
    limit: u64,
) -> Result<(Vec<Vec<Tensor>>, u64)> {
    let mut tensors = tensors.to_vec();
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    let mut shards: Vec<Vec<Tensor>> = vec![Vec::new()];
    let (mut total, mut filled) = (0u64, 0u64);
    for tensor in tensors {
        let bytes = bytes_of(&tensor, to)?;
        total = total.saturating_add(bytes);
        filled = filled.saturating_add(bytes);
        let last = shards.last_mut();
        if let Some(last) = last.filter(|last| last.is_empty() || filled <= limit) {
            last.push(tensor);
        } else {
            shards.push(vec![tensor]);
            filled = bytes;
        }
    }
    Ok((shards, total))
}

fn push_weights(
    stream: &mut FileStream,
    source: &ExportSource,
    to: Option<TensorType>,
    options: &ExportOptions,
) -> Result<()> {
    let limit = options.shard_bytes.unwrap_or(SHARD_BYTES);
    let (shards, total) = shards_of(&source.weights.tensors, to, limit)?;
    let count = shards.len();
    let name = |number: usize| match count {
        1 => MODEL_FILE.to_string(),
        _ => format!("model-{number:05}-of-{count:05}.safetensors"),
    };
    let names: Vec<String> = (1..=count).map(name).collect();
    let mut files = BTreeMap::new();
    for (name, shard) in names.iter().zip(&shards) {
        files.extend(shard.iter().map(|tensor| (tensor.name.clone(), name)));
    }
    let manifest = options.manifest.then(|| manifest_of(source, to, &files));
    let inside = manifest.as_ref().filter(|_| count == 1);
    let inside = inside.map(canonical).transpose()?;
    let metadata = format_pt(inside.map(|text| (MANIFEST_KEY, text)));
    let index = json!({ "metadata": { "total_size": total }, "weight_map": files });
    for (name, shard) in names.iter().zip(shards) {
        stream.push_safetensors_as(name, shard, to, Contents::Weights, &metadata)?;
    }
    if count > 1 {
        stream.push_bytes(INDEX, format!("{index:#}\n").into_bytes());
        if let Some(manifest) = manifest {
            stream.push_manifest(MANIFEST_FILE, manifest)?;
        }
    }
    Ok(())
}

/// Creates the manifest of the weights: every tensor with its role, including the optimizer's, and the groups that train them.
fn manifest_of(
    source: &ExportSource,
    to: Option<TensorType>,
    files: &BTreeMap<String, &String>,
) -> StateManifest {
    let record = |tensor: &Tensor, to, file: &str| {
        let described = ModelStateTensorManifest {
            dtype: tensor.dtype_as(to),
            ..tensor.manifest()
        };
        (tensor.name.clone(), TensorRecord::new(described, file))
    };
    let weights = source.weights.tensors.iter();
    let weights = weights.map(|tensor| record(tensor, to, files[&tensor.name]));
    let state = source.state.iter();
    let state = state.map(|tensor| record(tensor, None, OPTIMIZER_FILE));
    let tensors = weights.chain(state).collect();
    StateManifest {
        base: source.base.clone(),
        ..StateManifest::new(source.identity.clone(), tensors, source.groups.clone())
    }
}

/// PyTorch's word for the dtype that most of the values have in their files.
fn dtype_word(tensors: &[Tensor], to: Option<TensorType>) -> &'static str {
    let words = [
        ("F64", "float64"),
        ("F16", "float16"),
        ("BF16", "bfloat16"),
        ("F32", "float32"),
    ];
    let values = |dtype: &str| -> u128 {
        let of_dtype = tensors.iter().filter(|tensor| tensor.dtype_as(to) == dtype);
        of_dtype.map(|tensor| elements(&tensor.shape)).sum()
    };
    // The last one of equal numbers counts.
    let most = words.into_iter().max_by_key(|(dtype, _)| values(dtype));
    most.map_or("float32", |(_, word)| word)
}
