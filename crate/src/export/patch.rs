//! Writes a model back into the GGUF file that it came from: everything that was not trained stays byte for byte.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::gguf_base::{check_base, check_files, check_vocabulary, is_new, is_untouched};
use super::gguf_types::{
    GgufTypes, Place, Wanted, elements, encoded, file_type, is_plain, replaced, type_of_most,
    weight_of,
};
use super::source::ExportSource;
use crate::bundle::{FileStream, gguf_files, open_bundle, summed_gguf};
use crate::config::ModelConfig;
use crate::error::{Error, Refusal, Result, Warning, word};
use crate::families::{HEAD, embedding, from_gguf, to_gguf};
use crate::formats::{ByteSource, FileTensor, GgufFile, GgufValue, TensorType};
use crate::state::{Base, Bytes, Reordering, Tensor};

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
    let tensors: BTreeMap<&str, &Tensor> = weights
        .tensors
        .iter()
        .map(|tensor| (tensor.name.as_str(), tensor))
        .collect();
    let mut untouched = BTreeSet::new();
    for tensor in tensors
        .values()
        .filter(|tensor| !is_new(&tensor.name, config, &bundle))
    {
        if is_untouched(&bundle, tensor).await? {
            untouched.insert(tensor.name.as_str());
        }
    }
    if !untouched.is_empty() {
        check_files(source, &bundle)?;
    }
    let family = file
        .get("general.architecture")
        .and_then(GgufValue::text)
        .unwrap_or_default();
    let (mut outputs, mut refusals, mut other_types) = (Vec::new(), Vec::new(), Vec::new());
    for (stored, &home) in file.tensors.iter().zip(&homes) {
        let tensor_of =
            |(name, order): (String, Reordering)| Some((*tensors.get(tied(&name, config))?, order));
        let changed =
            |(tensor, _): &(&Tensor, Reordering)| !untouched.contains(tensor.name.as_str());
        let Some((tensor, order)) = from_gguf(&stored.name, family, config)
            .and_then(tensor_of)
            .filter(changed)
        else {
            let matrix = types
                .of_matrix(&stored.name, config)
                .filter(|_| !is_plain(&stored.name, &stored.shape));
            let wanted = matrix.map(|matrix| {
                matrix
                    .for_width(stored.shape.last().copied().unwrap_or(1))
                    .ggml()
            });
            if wanted.is_some_and(|wanted| wanted.dtype() != stored.dtype) {
                other_types.push(stored);
            }
            outputs.push(copy(stored, &files[home])?);
            continue;
        };
        match replacement(
            stored,
            tensor,
            order,
            types.of_matrix(&stored.name, config),
            requantise,
        ) {
            Ok(output) => outputs.push(output),
            Err(refusal) => refusals.push(*refusal),
        }
    }
    let absent = !file.tensors.iter().any(|stored| {
        from_gguf(&stored.name, family, config).is_some_and(|(name, _)| name == HEAD)
    });
    if let Some(head) = tensors.get(HEAD).filter(|_| absent) {
        match new_head(head, family, config, &file, types, requantise) {
            Ok(output) => outputs.push(output),
            Err(refusal) => refusals.push(*refusal),
        }
    }
    if !refusals.is_empty() {
        return Err(Error::Refused(refusals));
    }
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

/// Returns the warning about matrices that keep the base's types although another one was requested.
fn kept_types(tensors: &[&FileTensor]) -> Option<Warning> {
    let (first, more) = tensors.split_first()?;
    let more = if more.is_empty() {
        String::new()
    } else {
        format!(" and {} more", more.len())
    };
    Some(Warning::new(
        word!("export.gguf.type-kept"),
        &format!("{} ({}){more}", first.name, first.dtype),
    ))
}

/// Returns the model's name of a tensor of the base, which may store a tied head as a second tensor.
fn tied<'a>(name: &'a str, config: &ModelConfig) -> &'a str {
    if config.tie_word_embeddings && name == HEAD {
        embedding(config.architecture)
    } else {
        name
    }
}

/// Returns the head that the base's file does not have, in the type of the table that it was tied to unless another one was requested.
fn new_head(
    head: &Tensor,
    family: &str,
    config: &ModelConfig,
    file: &GgufFile,
    types: GgufTypes,
    requantise: bool,
) -> std::result::Result<Tensor, Box<Refusal>> {
    let unnamed = || {
        Refusal::new(word!("export.gguf.arch"))
            .of("gguf")
            .subject(HEAD)
            .expected(format!("a tensor of {family}"))
    };
    let (name, order) = to_gguf(HEAD, family, config).ok_or_else(|| Box::new(unnamed()))?;
    let is_table = |stored: &&FileTensor| {
        from_gguf(&stored.name, family, config)
            .is_some_and(|(name, _)| name == embedding(config.architecture))
    };
    let table = file
        .tensors
        .iter()
        .find(is_table)
        .map_or("F32", |stored| stored.dtype.as_str());
    let stored = FileTensor::new(&name, table, &head.shape);
    let as_table = head.on_device().is_none() && head.dtype == table;
    match types.of_matrix(&stored.name, config) {
        // The bytes of the table, even in a type that cannot be written.
        None if as_table => encoded(
            head,
            Place {
                name: stored.name,
                shape: stored.shape,
                order,
            },
            Wanted::AsStored,
            requantise,
        ),
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
    let bytes = stored.bytes.ok_or_else(unknown)?;
    let bytes = Bytes::of_source(Rc::clone(source), stored.begin, bytes);
    Ok(Tensor::parameter(
        &stored.name,
        &stored.dtype,
        &stored.shape,
        bytes,
    ))
}

/// Returns a tensor of the base with the model's values, in the type `matrix` if it is a matrix and a type other than the base's was requested.
fn replacement(
    stored: &FileTensor,
    tensor: &Tensor,
    order: Reordering,
    matrix: Option<TensorType>,
    requantise: bool,
) -> std::result::Result<Tensor, Box<Refusal>> {
    let FileTensor { name, shape, .. } = stored.clone();
    let matrix = matrix.filter(|_| !is_plain(&name, &shape));
    let wanted = Wanted::One(matrix.unwrap_or_else(|| replaced(stored)));
    encoded(tensor, Place { name, shape, order }, wanted, requantise)
}

/// Returns the metadata of the base for a single whole file.
fn metadata(file: &GgufFile, outputs: &[Tensor], types: GgufTypes) -> Vec<(String, GgufValue)> {
    let mut metadata: Vec<_> = file
        .metadata
        .iter()
        .filter(|(key, _)| !key.starts_with(SPLIT))
        .cloned()
        .collect();
    let changed = most_changed(file, outputs);
    if let Some(changed) = changed.map(|most| types.file_type().unwrap_or_else(|| file_type(most)))
        && let Some((_, value)) = metadata.iter_mut().find(|(key, _)| key == FILE_TYPE)
    {
        *value = GgufValue::of_u32(changed);
    }
    metadata
}

/// Returns the type that most weights have, if most of them had another one before.
fn most_changed(file: &GgufFile, outputs: &[Tensor]) -> Option<TensorType> {
    let (mut all, mut changed) = (0, 0);
    for (stored, output) in file.tensors.iter().zip(outputs) {
        let elements = elements(&stored.shape);
        all += elements;
        changed += if output.dtype == stored.dtype {
            0
        } else {
            elements
        };
    }
    // A head that was added comes after the tensors of the file.
    let replaced = outputs
        .get(..file.tensors.len())
        .filter(|_| 2 * changed > all)?;
    type_of_most(replaced)
}
