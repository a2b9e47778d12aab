//! Compares the GGUF file that a patch is written into with the model: its files, tensors, settings, and the values of a tensor.

use burn::tensor::DType;
use half::bf16;

use super::source::{ExportSource, Weights};
use crate::bundle::{Bundle, Pieces};
use crate::config::ModelConfig;
use crate::error::{Refusal, Result, refuse_all, word};
use crate::families::HEAD;
use crate::gpu::transfer::{Flat, RUN_BYTES, read_parts};
use crate::state::{Base, BaseFile, SourceFormat, Tensor};

/// Begins the refusal of a file that is not the base.
fn other(bundle: &Bundle, subject: &str) -> Refusal {
    let hint = "give the GGUF file that training started from";
    Refusal::new(word!("export.gguf.base"))
        .of(bundle.sources().next().map_or("", |(name, _)| name))
        .subject(subject)
        .hint(hint)
}

/// Describes the files of a base for a message.
fn described(base: &Base) -> String {
    let one = |file: &BaseFile| match file.header_sha256 {
        Some(sum) => format!(
            "{} bytes, header {}",
            file.bytes,
            sum.to_string().get(..8).unwrap_or_default()
        ),
        None => format!("{} bytes", file.bytes),
    };
    base.files.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// True if the model has the tensor `name` as its own, and the base has it tied to the embedding.
pub(super) fn is_new(name: &str, config: &ModelConfig, bundle: &Bundle) -> bool {
    name == HEAD && bundle.config.tie_word_embeddings && !config.tie_word_embeddings
}

/// Refuses a vocabulary that an adapter enlarged: the base's tokenizer, which is copied, has no tokens for its rows.
pub(super) fn check_vocabulary(source: &ExportSource, bundle: &Bundle) -> Result<()> {
    let grown = source
        .warnings
        .iter()
        .any(|warning| warning.code == word!("adapter.vocabulary").text());
    let (rows, of_base) = (source.weights.config.vocab_size, bundle.config.vocab_size);
    if !grown || rows == of_base {
        return Ok(());
    }
    let hint = "make a folder of the base first: tabtune convert --model BASE --to FOLDER (with --dtype f32 if the base has blocks), then \
                tabtune adapter merge --model FOLDER with the same adapter and options writes a file with a tokenizer of its own";
    Err(other(bundle, "vocabulary")
        .hint(hint)
        .expected(format!(
            "{of_base} rows, as the tokenizer of the base's file has, which is copied"
        ))
        .found(format!("{rows} rows, after the adapter enlarged it"))
        .into())
}

/// Refuses a base with other tensors or settings than the model's. A head that an adapter untied is a new tensor.
pub(super) fn check_base(weights: &Weights, bundle: &Bundle) -> Result<()> {
    if bundle.source_format != SourceFormat::Gguf {
        return Err(other(bundle, "format")
            .expected("gguf")
            .found(bundle.source_format)
            .into());
    }
    let config = &weights.config;
    let mut refusals = Vec::new();
    let shown = |tensor: Option<&Tensor>| match tensor {
        Some(tensor) => format!("{:?}", tensor.shape),
        None => "none".to_string(),
    };
    let of_base = |tensor: &&Tensor| !is_new(&tensor.name, config, bundle);
    for tensor in weights.tensors.iter().filter(of_base) {
        let found = bundle.tensor(&tensor.name);
        if found.map(|found| &found.shape) != Some(&tensor.shape) {
            let refusal = other(bundle, &tensor.name).expected(shown(Some(tensor)));
            refusals.push(refusal.found(shown(found)));
        }
    }
    refuse_all(refusals)?;
    let has_head = weights.tensors.iter().any(|tensor| tensor.name == HEAD);
    let untied = bundle.config.tie_word_embeddings && has_head;
    // A folder has another word for the family and another spread of new weights, neither of which a step depends on.
    let same = ModelConfig {
        model_type: bundle.config.model_type.clone(),
        initializer_range: bundle.config.initializer_range,
        tie_word_embeddings: config.tie_word_embeddings || untied,
        ..config.clone()
    };
    if same == bundle.config {
        Ok(())
    } else {
        Err(other(bundle, "metadata")
            .expected("the configuration of the model")
            .into())
    }
}

/// Refuses other files than those that the model records as its base, if they have the format of the base.
pub(super) fn check_files(source: &ExportSource, bundle: &Bundle) -> Result<()> {
    let recorded = source
        .base
        .as_ref()
        .filter(|base| base.format == bundle.base.format);
    match recorded.filter(|recorded| !recorded.matches(&bundle.base)) {
        Some(recorded) => Err(other(bundle, "files")
            .expected(described(recorded))
            .found(described(&bundle.base))
            .into()),
        None => Ok(()),
    }
}

/// True if the model still has the values that it loaded from the base.
pub(super) async fn is_untouched(bundle: &Bundle, tensor: &Tensor) -> Result<bool> {
    let mut pieces = bundle.pieces(&tensor.name, RUN_BYTES / 4)?;
    match tensor.on_device() {
        Some(flat) => same_on_device(&mut pieces, flat).await,
        None => same_in_files(&mut pieces, &mut tensor.pieces(RUN_BYTES / 4)?),
    }
}

async fn same_on_device(pieces: &mut Pieces, flat: &Flat) -> Result<bool> {
    let (dtype, size) = (flat.dtype(), flat.dtype().size() as u64);
    while let Some((at, values)) = pieces.next_piece()? {
        // These are the values as they are uploaded to the device.
        let expected: Vec<u8> = match dtype {
            DType::BF16 => values
                .iter()
                .flat_map(|value| bf16::from_f32(*value).to_le_bytes())
                .collect(),
            _ => bytemuck::cast_slice(values).to_vec(),
        };
        let begin = at * size;
        let bytes = begin..begin + expected.len() as u64;
        if read_parts(&flat.parts(&bytes)).await? != expected {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Compares two tensors of one shape, whose pieces may end at other places.
fn same_in_files(pieces: &mut Pieces, others: &mut Pieces) -> Result<bool> {
    let refill = |values: &mut Vec<f32>, pieces: &mut Pieces| -> Result<()> {
        if values.is_empty()
            && let Some((_, piece)) = pieces.next_piece()?
        {
            values.extend_from_slice(piece);
        }
        Ok(())
    };
    let (mut left, mut right) = (Vec::new(), Vec::new());
    loop {
        refill(&mut left, pieces)?;
        refill(&mut right, others)?;
        let count = left.len().min(right.len());
        if count == 0 {
            return Ok(left.len() == right.len());
        }
        let mut pairs = left.drain(..count).zip(right.drain(..count));
        if pairs.any(|(a, b)| a.to_bits() != b.to_bits()) {
            return Ok(false);
        }
    }
}
