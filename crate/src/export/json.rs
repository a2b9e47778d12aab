//! A model as a JSON state dict.

use std::collections::BTreeMap;

use super::choice::ExportChoice;
use super::format::Format;
use super::options::ExportOptions;
use super::source::ExportSource;
use super::{ExportFormat, check_kind};
use crate::bundle::{FileStream, MAX_JSON_BYTES, STATE_JSON};
use crate::error::{Refusal, Result, word};
use crate::state::{Bytes, PIECE_ELEMENTS, PortableModelStateDict, RECEIPT, SourceWord, Tensor};

/// Name of the document without its ending, unless another one is asked for.
const NAME: &str = "model";

/// One JSON document.
pub(super) const FORMAT: Format = Format {
    word: "json",
    about: "JSON document",
    ending: STATE_JSON,
    is_of_adapter: false,
    own_options: &["encoding", "manifest", "optimizer"],
    export: |source, _, options| Box::pin(export_json(source, options)),
    choices,
};

/// A document: small enough, and without NaN and infinity, which is found when it is written.
fn choices(source: &ExportSource) -> Vec<ExportChoice> {
    if source.adapter_settings.is_some() {
        return Vec::new();
    }
    let tensors = &source.weights.tensors;
    let least = |tensor: &Tensor| {
        let count = tensor.numel();
        count.map_or(u64::MAX, |count| count.saturating_mul(2))
    };
    let bytes = tensors.iter().map(least).fold(0, u64::saturating_add);
    let reason = if bytes > MAX_JSON_BYTES {
        Some(format!(
            "at least {bytes} bytes, of at most {MAX_JSON_BYTES}"
        ))
    } else {
        let blocks = tensors.iter().find(|tensor| tensor.is_blocks());
        blocks.map(|tensor| {
            format!(
                "{} is {}, which numbers cannot hold: ask for the encoding base64",
                tensor.name, tensor.dtype
            )
        })
    };
    let lossy = "configuration and tokenizer".to_string();
    vec![ExportChoice {
        lossy: reason.is_none().then_some(lossy),
        ok: reason.is_none(),
        reason,
        ..ExportChoice::new(ExportFormat::Json, None)
    }]
}

async fn export_json(source: &ExportSource, options: &ExportOptions) -> Result<FileStream> {
    check_kind(source, ExportFormat::Json)?;
    let state = state_of(source, options.optimizer)?;
    options.check_names(STATE_JSON)?;
    let usual = || format!("{}{STATE_JSON}", options.name.as_deref().unwrap_or(NAME));
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

/// The weights as a state dict; for a run, with groups and the optimizer's state if requested.
fn state_of(source: &ExportSource, optimizer: bool) -> Result<PortableModelStateDict> {
    let (state, groups) = if optimizer {
        (&source.state[..], source.groups.clone())
    } else {
        (&[][..], Vec::new())
    };
    let mut tensors = BTreeMap::new();
    for tensor in source.weights.tensors.iter().chain(state) {
        tensors.insert(tensor.name.clone(), in_order(tensor)?);
    }
    PortableModelStateDict::new(
        source.identity.clone(),
        SourceWord::Tabtune,
        tensors,
        groups,
    )
}

/// The tensor with bytes that can be read in Hugging Face's order: as F32 in memory where the stored bytes cannot be used, because they are
/// transposed or changed by an adapter.
fn in_order(tensor: &Tensor) -> Result<Tensor> {
    if tensor.merged().is_none() && !tensor.order().moves_columns() {
        return Ok(tensor.clone());
    }
    let pieces = tensor.pieces(PIECE_ELEMENTS)?;
    if pieces.elements() > MAX_JSON_BYTES / 4 {
        return Err(Refusal::new(word!("export.json.too-large"))
            .of("json")
            .subject(&tensor.name)
            .expected(format!("at most {MAX_JSON_BYTES} bytes"))
            .found(format!("{} values", pieces.elements()))
            .into());
    }
    let bytes: Vec<u8> = bytemuck::cast_slice(&pieces.collect()?).to_vec();
    let mut tensor = tensor.clone().with_bytes(Bytes::host(bytes));
    tensor.dtype = "F32".to_string();
    Ok(tensor)
}
