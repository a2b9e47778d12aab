//! Writes a model back into the GGUF file that it came from: everything that was not trained stays byte for byte.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::gguf_base::{check_base, check_files, check_vocabulary, is_new, is_untouched};
use super::gguf_types::{
    GgufTypes, Place, all_encoded, and_more, elements, encoded, is_plain, need_place, replaced,
    type_of_most, weight_of,
};
use super::source::ExportSource;
use crate::bundle::{FileStream, gguf_files, open_bundle, summed_gguf};
use crate::config::ModelConfig;
use crate::error::{Refusal, Result, Warning, word};
use crate::families::{HEAD, embedding, from_gguf};
use crate::formats::{ByteSource, FileTensor, GgufFile, GgufValue, TensorType};
use crate::state::{Base, Reordering, Tensor};

const FILE_TYPE: &str = "general.file_type";
/// Prefix of the keys that distinguish the parts of a split file.
const SPLIT: &str = "split.";

/// Writes `<name>.gguf`: the base with the model's tensors in place of its own. A tensor whose values are those that the base gave the model
/// is copied unchanged, and so are metadata and tokenizer, except for `split.*`, which a single file does not need, and `general.file_type`,
/// if most of the weights change their type. If the base stores a tied head as a second tensor, both are replaced; a head that is no longer
/// tied becomes a new tensor, in the type of the table. The comparison of a tensor ends at its first difference. Returns the base too, with
/// the checksums of its files, and a warning if unchanged matrices keep other types than the requested one.
pub(super) async fn patch(
    source: &ExportSource,
    files: Vec<Rc<dyn ByteSource>>,
    name: &str,
    types: GgufTypes,
    requantise: bool,
) -> Result<(FileStream, Base, Option<Warning>)> {
    let (weights, config) = (&source.weights, &source.weights.config);
    let bundle = open_bundle(files.clone())?;
    check_vocabulary(source, &bundle)?;
    check_base(weights, &bundle)?;
    let (file, homes, _) = summed_gguf(&files, &gguf_files(&files))?;
    // The tensors with other values than those of the base.
    let mut changed: BTreeMap<&str, &Tensor> = BTreeMap::new();
    for tensor in &weights.tensors {
        if is_new(&tensor.name, config, &bundle) || !is_untouched(&bundle, tensor).await? {
            changed.insert(&tensor.name, tensor);
        }
    }
    if changed.len() < weights.tensors.len() {
        check_files(source, &bundle)?;
    }
    let family = file.get("general.architecture").and_then(GgufValue::text);
    let family = family.unwrap_or_default();
    let (mut outputs, mut other_types) = (Vec::new(), Vec::new());
    for (stored, &home) in file.tensors.iter().zip(&homes) {
        let matrix = types
            .of_matrix(&stored.name, config)
            .filter(|_| !is_plain(&stored.name, &stored.shape));
        let place = from_gguf(&stored.name, family, config);
        let replaced =
            place.and_then(|(name, order)| Some((changed.get(tied(&name, config))?, order)));
        if let Some((tensor, order)) = replaced {
            outputs.push(replacement(stored, tensor, order, matrix, requantise));
            continue;
        }
        let width = stored.shape.last().copied().unwrap_or(1);
        let wanted = matrix.map(|matrix| matrix.for_width(width).ggml());
        if wanted.is_some_and(|wanted| wanted.dtype() != stored.dtype) {
            other_types.push(stored);
        }
        outputs.push(Ok(copy(stored, &files[home])?));
    }
    let is_head = |stored: &FileTensor| {
        from_gguf(&stored.name, family, config).is_some_and(|(name, _)| name == HEAD)
    };
    if let Some(head) = changed.get(HEAD)
        && !file.tensors.iter().any(is_head)
    {
        outputs.push(new_head(head, family, config, &file, types, requantise));
    }
    let outputs = all_encoded(outputs)?;
    let mut stream = FileStream::summed();
    stream.push_gguf(
        &format!("{name}.gguf"),
        &metadata(&file, &outputs, types),
        outputs,
        |name| weight_of(name, family, config),
    )?;
    let base = bundle.base.clone().hashed(&bundle)?;
    Ok((stream, base, kept_types(&other_types)))
}

/// The warning about matrices that keep the base's types although another one was requested.
fn kept_types(tensors: &[&FileTensor]) -> Option<Warning> {
    let (first, more) = tensors.split_first()?;
    let first = format!("{} ({})", first.name, first.dtype);
    Some(Warning::new(
        word!("export.gguf.type-kept"),
        &and_more(first, more.len()),
    ))
}

/// The model's name of a tensor of the base, which may store a tied head as a second tensor.
fn tied<'a>(name: &'a str, config: &ModelConfig) -> &'a str {
    if config.tie_word_embeddings && name == HEAD {
        embedding(config.architecture)
    } else {
        name
    }
}

/// The head that the base's file does not have, in the type of the table that it was tied to unless another one was requested.
fn new_head(
    head: &Tensor,
    family: &str,
    config: &ModelConfig,
    file: &GgufFile,
    types: GgufTypes,
    requantise: bool,
) -> Result<Tensor> {
    let (name, order) = need_place(HEAD, family, config)?;
    let is_table = |stored: &&FileTensor| {
        from_gguf(&stored.name, family, config)
            .is_some_and(|(name, _)| name == embedding(config.architecture))
    };
    let table = file.tensors.iter().find(is_table);
    let table = table.map_or("F32", |stored| &stored.dtype);
    let as_table = head.on_device().is_none() && head.dtype == table;
    let stored = FileTensor::new(&name, table, &head.shape);
    match types.of_matrix(&name, config) {
        // The bytes of the table, even in a type that cannot be written.
        None if as_table => {
            let shape = stored.shape;
            let place = Place { name, shape, order };
            encoded(head, place, None, requantise)
        }
        matrix => replacement(&stored, head, order, matrix, requantise),
    }
}

/// Copies a tensor of the base.
fn copy(stored: &FileTensor, source: &Rc<dyn ByteSource>) -> Result<Tensor> {
    let unknown = || {
        Refusal::new(word!("export.gguf.type"))
            .of(source.name())
            .subject(&stored.name)
            .found(&stored.dtype)
    };
    stored.bytes.ok_or_else(unknown)?;
    Ok(Tensor::in_file(stored, source))
}

/// A tensor of the base with the model's values, in the type `matrix` if another one than the base's was requested.
fn replacement(
    stored: &FileTensor,
    tensor: &Tensor,
    order: Reordering,
    matrix: Option<TensorType>,
    requantise: bool,
) -> Result<Tensor> {
    let FileTensor { name, shape, .. } = stored.clone();
    let wanted = matrix.unwrap_or_else(|| replaced(stored));
    encoded(
        tensor,
        Place { name, shape, order },
        Some(wanted),
        requantise,
    )
}

/// The metadata of the base for a single whole file.
fn metadata(file: &GgufFile, outputs: &[Tensor], types: GgufTypes) -> Vec<(String, GgufValue)> {
    let mut metadata = file.metadata.clone();
    metadata.retain(|(key, _)| !key.starts_with(SPLIT));
    let stated = metadata.iter_mut().find(|(key, _)| key == FILE_TYPE);
    let most = most_changed(file, outputs);
    let number = most.and_then(|most| types.file_type(Some(most)));
    if let (Some(number), Some((_, value))) = (number, stated) {
        *value = GgufValue::of_u32(number);
    }
    metadata
}

/// The type that most weights have, if most of them had another one before.
fn most_changed(file: &GgufFile, outputs: &[Tensor]) -> Option<TensorType> {
    // A head that was added comes after the tensors of the file.
    let replaced = &outputs[..file.tensors.len()];
    let (mut all, mut changed) = (0, 0);
    for (stored, output) in file.tensors.iter().zip(replaced) {
        let elements = elements(&stored.shape);
        all += elements;
        if output.dtype != stored.dtype {
            changed += elements;
        }
    }
    if 2 * changed > all {
        type_of_most(replaced)
    } else {
        None
    }
}
