//! A model as a JSON state dict.

use std::collections::BTreeMap;

use super::choice::ExportChoice;
use super::format::{BaseFiles, Exporting, Format};
use super::options::ExportOptions;
use super::source::ExportSource;
use super::{ExportFormat, check_kind};
use crate::bundle::{FileStream, MAX_JSON_BYTES};
use crate::error::{Refusal, Result, word};
use crate::state::{
    Bytes, ModelStateTensorManifest, PIECE_ELEMENTS, PortableModelStateDict, RECEIPT, Reordering,
    SourceWord, Tensor,
};

/// Name of the document without its ending, unless another one is asked for.
const NAME: &str = "model";
/// Ending of the document.
const ENDING: &str = ".state_dict.json";

/// One JSON document.
pub(super) struct Json;

impl Format for Json {
    fn word(&self) -> &'static str {
        "json"
    }

    fn about(&self) -> &'static str {
        "JSON document"
    }

    fn ending(&self) -> &'static str {
        ENDING
    }

    fn own_options(&self) -> &'static [&'static str] {
        &["encoding", "manifest", "optimizer"]
    }

    fn export<'a>(
        &self,
        source: &'a ExportSource,
        _: BaseFiles,
        options: &'a ExportOptions,
    ) -> Exporting<'a> {
        Box::pin(export_json(source, options))
    }

    /// A document: small enough, and without NaN and infinity, which is found when it is written.
    fn choices(&self, source: &ExportSource) -> Vec<ExportChoice> {
        if source.adapter_settings.is_some() {
            return Vec::new();
        }
        let tensors = || source.weights.tensors.iter().map(Tensor::manifest);
        let least = |tensor: ModelStateTensorManifest| {
            tensor
                .numel()
                .map_or(u64::MAX, |count| count.saturating_mul(2))
        };
        let bytes = tensors().fold(0u64, |sum, tensor| sum.saturating_add(least(tensor)));
        let reason = match tensors().find(|tensor| !tensor.is_dense()) {
            _ if bytes > MAX_JSON_BYTES => Some(format!(
                "at least {bytes} bytes, of at most {MAX_JSON_BYTES}"
            )),
            Some(tensor) => Some(format!(
                "{} is {}, which numbers cannot hold: ask for the encoding base64",
                tensor.state_key, tensor.dtype
            )),
            None => None,
        };
        let lossy = reason
            .is_none()
            .then(|| "configuration and tokenizer".to_string());
        vec![ExportChoice {
            format: ExportFormat::Json,
            types: None,
            ok: reason.is_none(),
            bytes: None,
            lossy,
            needs: None,
            reason,
            plain: None,
        }]
    }
}

async fn export_json(source: &ExportSource, options: &ExportOptions) -> Result<FileStream> {
    check_kind(source, ExportFormat::Json)?;
    let state = state_of(source, options.optimizer)?;
    options.check_names(ENDING)?;
    let usual = || format!("{}{ENDING}", options.name.as_deref().unwrap_or(NAME));
    let name = options.file_name.clone().unwrap_or_else(usual);
    let manifest = options.manifest.then(|| state.manifest());
    let mut stream = state
        .export_json(
            &name,
            manifest.as_ref(),
            options.encoding,
            options.allow_non_finite,
        )
        .await?;
    stream.push_receipt(RECEIPT, source.draft())?;
    Ok(stream)
}

/// Returns the weights as a state dict; for a run, with groups and the optimizer's state if requested.
fn state_of(source: &ExportSource, optimizer: bool) -> Result<PortableModelStateDict> {
    let mut tensors = BTreeMap::new();
    let state = source.state.iter().filter(|_| optimizer);
    for tensor in source.weights.tensors.iter().chain(state) {
        tensors.insert(tensor.name.clone(), in_order(tensor)?);
    }
    let groups = if optimizer {
        source.groups.clone()
    } else {
        Vec::new()
    };
    PortableModelStateDict::new(
        source.identity.clone(),
        SourceWord::Tabtune,
        tensors,
        groups,
    )
}

/// Returns a tensor whose bytes can be read in Hugging Face's order: as F32 in memory where the stored bytes cannot be used, because they are
/// transposed or changed by an adapter.
fn in_order(tensor: &Tensor) -> Result<Tensor> {
    if tensor.merged().is_none() && tensor.order() != Reordering::Transposed {
        return Ok(tensor.clone());
    }
    let mut pieces = tensor.pieces(PIECE_ELEMENTS)?;
    if pieces.elements() > MAX_JSON_BYTES / 4 {
        let refusal = Refusal::new(word!("export.json.too-large"))
            .of("json")
            .subject(&tensor.name);
        return Err(refusal
            .expected(format!("at most {MAX_JSON_BYTES} bytes"))
            .found(format!("{} values", pieces.elements()))
            .into());
    }
    let mut bytes = Vec::new();
    while let Some((_, values)) = pieces.next_piece()? {
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }
    let mut tensor = tensor.clone().with_bytes(Bytes::host(bytes));
    tensor.dtype = "F32".to_string();
    Ok(tensor)
}
