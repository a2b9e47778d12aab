//! Exports a model in any format.

use std::collections::BTreeMap;

use super::payload::Payload;
use super::source_word::SourceWord;
use super::state_dict::{PortableModelStateDict, StateTensorEntry};
use crate::bundle::{FileStream, MAX_JSON_BYTES, PIECE_ELEMENTS, StoredBytes, StoredTensor, StreamTensor, StreamValues};
use crate::checkpoint::Checkpoint;
use crate::error::{Refusal, Result, word};
use crate::export::{
    ExportFormat, ExportOptions, ExportSource, Weights, check_kind, export_adapter, export_folder, export_gguf, export_gguf_adapter,
    export_merged, opened_merged, training_record,
};
use crate::formats::{ByteSource, SourceSpan};
use crate::state::{ModelStateTensorManifest, RECEIPT};

/// Default name of the document of a JSON export, without its ending.
const JSON_NAME: &str = "model";

/// Writes `source` in the requested format, the receipt last. `base_files` are those of a GGUF file that the model's tensors are written into,
/// or of the base that a trained adapter is merged into.
///
/// # Errors
/// `tensor.non-finite` for weights with NaN or infinite values that are not allowed; those of [`export_folder`], [`export_gguf`],
/// [`export_adapter`], [`export_gguf_adapter`], [`export_merged`] and [`PortableModelStateDict::export_json`].
pub async fn export(source: &ExportSource, base_files: Vec<Box<dyn ByteSource>>, options: &ExportOptions) -> Result<FileStream> {
    let whole = matches!(options.format, ExportFormat::Safetensors | ExportFormat::Gguf);
    if whole && let Some(merged) = opened_merged(source, options)? {
        let files = if base_files.is_empty() { merged.files } else { base_files };
        return whole_model(&merged.source, files, &merged.options).await;
    }
    match options.format {
        ExportFormat::Peft => Ok(export_adapter(source, options)?.allow_non_finite(options.allow_non_finite)),
        ExportFormat::GgufAdapter => Ok(export_gguf_adapter(source, options)?.allow_non_finite(options.allow_non_finite)),
        ExportFormat::Safetensors | ExportFormat::Gguf if source.adapter_settings.is_some() => {
            Ok(export_merged(source, base_files, options).await?.allow_non_finite(options.allow_non_finite))
        }
        ExportFormat::Safetensors | ExportFormat::Gguf => whole_model(source, base_files, options).await,
        ExportFormat::Json => {
            check_kind(source, ExportFormat::Json)?;
            let state = state_of(source, options.optimizer)?;
            options.check_names(".state_dict.json")?;
            let usual = || format!("{}.state_dict.json", options.name.as_deref().unwrap_or(JSON_NAME));
            let name = options.file_name.clone().unwrap_or_else(usual);
            let manifest = options.manifest.then(|| state.manifest());
            let mut stream = state.export_json(&name, manifest.as_ref(), options.encoding, options.allow_non_finite).await?;
            stream.push_receipt(RECEIPT, source.draft())?;
            Ok(stream)
        }
    }
}

async fn whole_model(source: &ExportSource, base_files: Vec<Box<dyn ByteSource>>, options: &ExportOptions) -> Result<FileStream> {
    let stream = match options.format {
        ExportFormat::Gguf => export_gguf(source, base_files, options).await?,
        _ => export_folder(source, options)?,
    };
    Ok(stream.allow_non_finite(options.allow_non_finite))
}

/// Returns the state of a checkpoint, to be exported without a device; for a run with an adapter, the adapter alone.
///
/// # Errors
/// `model.tensor.missing` for weights that the checkpoint lacks, and those of [`training_record`].
pub fn checkpoint_source(checkpoint: &Checkpoint, data_name: &str) -> Result<ExportSource> {
    let bundle = checkpoint.shared_bundle();
    let manifest = checkpoint.manifest();
    let adapter = manifest.train.adapter.clone();
    let of_files = if adapter.is_some() { Weights::of_names(&bundle, checkpoint.weight_names())? } else { Weights::of_bundle(&bundle)? };
    let weights = Weights { precision: Some(manifest.precision), ..of_files };
    Ok(ExportSource {
        weights,
        adapter: Vec::new(),
        adapter_settings: adapter,
        base: manifest.base.clone(),
        training: Some(training_record(&manifest.train, manifest.progress, &manifest.data_digest, data_name, None)?),
        identity: manifest.identity.clone(),
        groups: manifest.groups.clone(),
        state: checkpoint.state_stream(),
        ..ExportSource::of_bundle(&bundle)?
    })
}

/// Returns the weights as a state dict; for a run, with groups and the optimizer's state if requested.
fn state_of(source: &ExportSource, optimizer: bool) -> Result<PortableModelStateDict> {
    let mut tensors = BTreeMap::new();
    let state = source.state.iter().filter(|_| optimizer);
    for tensor in source.weights.tensors.iter().chain(state) {
        let (dtype, payload) = payload_of(tensor)?;
        let shape: Vec<u64> = tensor.shape.iter().map(|&dim| dim as u64).collect();
        let manifest = ModelStateTensorManifest::of_name(&tensor.name, &dtype, &shape);
        tensors.insert(tensor.name.clone(), StateTensorEntry { manifest, payload });
    }
    let groups = if optimizer { source.groups.clone() } else { Vec::new() };
    PortableModelStateDict::new(source.identity.clone(), SourceWord::Tabtune, tensors, groups)
}

/// Returns the bytes of a tensor in Hugging Face's order, and their dtype.
fn payload_of(tensor: &StreamTensor) -> Result<(String, Payload)> {
    let dtype = tensor.dtype().to_string();
    let of_span = |SourceSpan { source, begin, bytes }| Payload::of_source(source, begin, bytes);
    Ok(match &tensor.values {
        StreamValues::Device(values) => (dtype, Payload::device(values.clone())),
        StreamValues::U64(value) => (dtype, Payload::owned(value.to_le_bytes().to_vec())),
        StreamValues::Copied(stored) => (dtype, of_span(stored.span().clone())),
        StreamValues::Stored(stored) => match (stored.plain_span(), stored.paired_heads(), stored.span()) {
            (Some(span), ..) => (dtype, of_span(span)),
            (None, Some(heads), Some(SourceSpan { source, begin, bytes })) => {
                let rows = tensor.shape.first().map_or(1, |&rows| rows as u64);
                (dtype, Payload::paired_rows(source, begin, bytes, rows, heads as u64))
            }
            _ => ("F32".to_string(), widened(stored, &tensor.name)?),
        },
    })
}

/// Returns the values as F32 where the stored bytes cannot be used: transposed, or changed by an adapter.
fn widened(stored: &StoredTensor, name: &str) -> Result<Payload> {
    let mut pieces = stored.pieces(PIECE_ELEMENTS)?;
    if pieces.elements() > MAX_JSON_BYTES / 4 {
        let refusal = Refusal::new(word!("export.json.too-large")).of("json").subject(name);
        return Err(refusal.expected(format!("at most {MAX_JSON_BYTES} bytes")).found(format!("{} values", pieces.elements())).into());
    }
    let mut bytes = Vec::new();
    while let Some((_, values)) = pieces.next_piece()? {
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }
    Ok(Payload::owned(bytes))
}

/// Adds the optimizer's state of a checkpoint as it is in its file.
impl Checkpoint {
    fn state_stream(&self) -> Vec<StreamTensor> {
        let tensor = |(name, dtype, shape, span): (String, String, Vec<usize>, SourceSpan)| StreamTensor {
            name,
            shape,
            values: StreamValues::Copied(StoredBytes::new(&dtype, span)),
        };
        self.state_spans().into_iter().map(tensor).collect()
    }
}
