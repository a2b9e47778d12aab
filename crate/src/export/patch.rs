//! A model back into the GGUF file that it came from: what was not trained stays byte for byte.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use burn::tensor::DType;
use half::bf16;

use super::gguf_types::{GgufTypes, encoded, file_type, is_plain, replaced};
use crate::bundle::{
    Bundle, ByteSource, FileStream, GgmlType, GgufContents, GgufFile, GgufOutput, GgufRecord, GgufTensor, GgufValue, HEAD, Layout,
    SourceFormat, SourceSpan, StreamTensor, StreamValues, TensorType, embedding, from_gguf, gguf_files, open_bundle, whole_gguf,
};
use crate::config::ModelConfig;
use crate::error::{Error, Refusal, Result, word};
use crate::gpu::transfer::{Part, RUN_BYTES, read_parts};
use crate::model::Model;

const FILE_TYPE: &str = "general.file_type";
/// What the keys begin with that tell the parts of a split file apart.
const SPLIT: &str = "split.";

/// The GGUF file that a model came from.
pub struct GgufBase {
    /// The file, or the parts of a split one in any order. Files beside it are not used.
    pub files: Vec<Box<dyn ByteSource>>,
    /// Sizes of the GGUF files that training started from, where they are recorded.
    pub recorded_bytes: Option<Vec<u64>>,
}

/// `<name>.gguf`: the base with the model's tensors in place of its own. A tensor whose values are those that the base gave the model is
/// copied as it is, and so are metadata and tokenizer, except for `split.*`, which one file does not need, and `general.file_type`, where most
/// of the weights change their type. A tied head that the base has a second time is replaced twice. Of each tensor only as much is compared
/// as is equal.
///
/// # Errors
/// `export.gguf.base` if the base has other tensors, shapes or settings than the model, or, unless every tensor is replaced, another size than
/// is recorded; `export.gguf.type` for a type that cannot be written. While the stream is read, `export.overflow` for values beyond their type.
pub async fn gguf_patch(model: &Model, base: GgufBase, name: &str, types: GgufTypes) -> Result<FileStream> {
    let files: Vec<Rc<dyn ByteSource>> = base.files.into_iter().map(Rc::from).collect();
    let bundle = open_bundle(files.iter().map(|file| Box::new(Rc::clone(file)) as Box<dyn ByteSource>).collect())?;
    check_base(model, &bundle)?;
    let positions = gguf_files(&files);
    let (file, homes) = whole_gguf(&files, &positions)?;
    let tensors: BTreeMap<String, StreamTensor> = model.stream_tensors().into_iter().map(|tensor| (tensor.name.clone(), tensor)).collect();
    let mut untouched = BTreeSet::new();
    for tensor in tensors.values() {
        if is_untouched(&bundle, tensor).await? {
            untouched.insert(tensor.name.as_str());
        }
    }
    if !untouched.is_empty() {
        check_recorded(base.recorded_bytes, positions.iter().map(|&at| files[at].len()).collect())?;
    }
    let family = file.get("general.architecture").and_then(GgufValue::text).unwrap_or_default();
    let mut outputs = Vec::new();
    for (stored, &home) in file.tensors.iter().zip(&homes) {
        let place = from_gguf(&stored.name, family, model.config());
        let place = place.and_then(|(name, layout)| Some((tensors.get(tied(&name, model.config()))?, layout)));
        outputs.push(match place.filter(|(tensor, _)| !untouched.contains(tensor.name.as_str())) {
            Some((tensor, layout)) => replacement(stored, tensor, layout, types.of_matrix(&stored.name, model.config())),
            None => copy(stored, &files[home])?,
        });
    }
    let mut stream = FileStream::new();
    stream.push_gguf(&format!("{name}.gguf"), &metadata(&file, &outputs, types), outputs)?;
    Ok(stream)
}

/// The model's name of a tensor of the base, which may have a tied head a second time.
fn tied<'a>(name: &'a str, config: &ModelConfig) -> &'a str {
    if config.tie_word_embeddings && name == HEAD { embedding(config.architecture) } else { name }
}

fn other(bundle: &Bundle, subject: &str) -> Refusal {
    let hint = "give the GGUF file that training started from";
    Refusal::new(word!("export.gguf.base")).of(bundle.sources().next().map_or("", |(name, _)| name)).subject(subject).hint(hint)
}

/// Refuses a base of other tensors or settings than the model's.
fn check_base(model: &Model, bundle: &Bundle) -> Result<()> {
    if bundle.source_format != SourceFormat::Gguf {
        return Err(other(bundle, "format").expected("gguf").found(bundle.source_format).into());
    }
    let shapes = model.parameters().into_iter().map(|parameter| (bundle.shape(&parameter.name), parameter));
    let differs = shapes.filter(|(found, parameter)| found.as_ref() != Some(&parameter.shape));
    let refusals: Vec<Refusal> = differs
        .map(|(found, parameter)| {
            let found = found.map_or_else(|| "none".to_string(), |shape| format!("{shape:?}"));
            other(bundle, &parameter.name).expected(format!("{:?}", parameter.shape)).found(found)
        })
        .collect();
    if !refusals.is_empty() {
        return Err(Error::Refused(refusals));
    }
    // A folder has another word for the family and the spread of new weights, neither of which a step depends on.
    let (model_type, initializer_range) = (bundle.config.model_type.clone(), bundle.config.initializer_range);
    let same = ModelConfig { model_type, initializer_range, ..model.config().clone() };
    if same == bundle.config { Ok(()) } else { Err(other(bundle, "metadata").expected("the configuration of the model").into()) }
}

/// Refuses files of other sizes than those that training started from.
fn check_recorded(recorded: Option<Vec<u64>>, mut found: Vec<u64>) -> Result<()> {
    let Some(mut recorded) = recorded else { return Ok(()) };
    recorded.sort_unstable();
    found.sort_unstable();
    if recorded == found {
        return Ok(());
    }
    let refusal = Refusal::new(word!("export.gguf.base")).of("gguf").subject("bytes");
    Err(refusal.expected(format!("{recorded:?}")).found(format!("{found:?}")).into())
}

/// Whether the model has the values that it loaded from the base.
async fn is_untouched(bundle: &Bundle, tensor: &StreamTensor) -> Result<bool> {
    let StreamValues::Device(handle) = &tensor.values else { return Ok(false) };
    let (dtype, size) = (handle.dtype(), handle.dtype().size() as u64);
    let mut pieces = bundle.pieces(&tensor.name, RUN_BYTES / 4)?;
    while let Some((at, values)) = pieces.next_piece()? {
        // As they are put on the device.
        let expected: Vec<u8> = match dtype {
            DType::BF16 => values.iter().flat_map(|value| bf16::from_f32(*value).to_le_bytes()).collect(),
            _ => bytemuck::cast_slice(values).to_vec(),
        };
        let begin = at * size;
        let part = Part { tensor: handle.clone(), bytes: begin..begin + expected.len() as u64 };
        if read_parts(&[part]).await? != expected {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A tensor as the base has it.
fn copy(stored: &GgufTensor, source: &Rc<dyn ByteSource>) -> Result<GgufOutput> {
    let GgufTensor { name, ggml_type, shape, begin, bytes } = stored.clone();
    let unknown = || Refusal::new(word!("export.gguf.type")).of(source.name()).subject(&stored.name).found(ggml_type.dtype());
    let bytes = bytes.ok_or_else(unknown)?;
    let contents = GgufContents::Copied(SourceSpan { source: Rc::clone(source), begin, bytes });
    Ok(GgufOutput { record: GgufRecord { name, ggml_type, shape }, contents })
}

/// A tensor of the base with the model's values, in the type `matrix` if it is one and another type than the base's was asked for.
fn replacement(stored: &GgufTensor, tensor: &StreamTensor, layout: Layout, matrix: Option<TensorType>) -> GgufOutput {
    let GgufTensor { name, ggml_type, shape, .. } = stored.clone();
    let matrix = matrix.filter(|_| !is_plain(&name, &shape));
    encoded(tensor, name, shape, layout, matrix.unwrap_or_else(|| replaced(ggml_type)))
}

/// The metadata of the base as one whole file has them.
fn metadata(file: &GgufFile, outputs: &[GgufOutput], types: GgufTypes) -> Vec<(String, GgufValue)> {
    let mut metadata: Vec<_> = file.metadata.iter().filter(|(key, _)| !key.starts_with(SPLIT)).cloned().collect();
    let changed = most_changed(file, outputs).and_then(TensorType::of_ggml);
    if let Some(changed) = changed.map(|most| types.file_type().unwrap_or_else(|| file_type(most)))
        && let Some((_, value)) = metadata.iter_mut().find(|(key, _)| key == FILE_TYPE)
    {
        *value = GgufValue::of_u32(changed);
    }
    metadata
}

/// The type that most weights have now, if most of them had another one.
fn most_changed(file: &GgufFile, outputs: &[GgufOutput]) -> Option<GgmlType> {
    let (mut all, mut changed, mut of_type) = (0u128, 0u128, BTreeMap::<u32, u128>::new());
    for (stored, output) in file.tensors.iter().zip(outputs) {
        let elements = stored.shape.iter().map(|&dim| u128::from(dim)).product::<u128>();
        let now = output.record.ggml_type;
        all += elements;
        changed += if now == stored.ggml_type { 0 } else { elements };
        *of_type.entry(now.id).or_default() += elements;
    }
    let most = of_type.into_iter().max_by_key(|(_, elements)| *elements);
    most.filter(|_| 2 * changed > all).map(|(id, _)| GgmlType::from_id(id))
}
