//! Writes a model as a new GGUF file, whatever it came from.

use super::architecture::{architecture, divisors, keys};
use super::gguf_types::{
    GgufTypes, Place, all_encoded, encoded, is_plain, need_place, type_of_most, weight_of,
};
use super::source::{ExportSource, Weights};
use crate::bundle::{FileStream, tokenizer_keys};
use crate::error::Result;
use crate::families::to_gguf;
use crate::formats::{GgufValue, TensorType};
use crate::model::planned_parameters;
use crate::state::{Reordering, Tensor};

/// Key of a GGUF file with the license of the model.
pub(super) const LICENSE: &str = "general.license";

/// Ids that llama.cpp takes for the end of a text where a file names none, by the kind of the vocabulary (`src/llama-vocab.cpp`).
const DEFAULT_ENDS: [(&str, usize); 2] = [("gpt2", 11), ("llama", 2)];

/// The parts that every GGUF file of a model shares.
pub(super) struct Start {
    /// Architecture of the file.
    pub(super) family: &'static str,
    tokenizer: Vec<(String, GgufValue)>,
}

impl Start {
    /// Determines the architecture and the tokenizer's keys of a model.
    pub(super) fn of(source: &ExportSource) -> Result<Self> {
        let config = &source.weights.config;
        let family = architecture(config)?;
        Ok(Self {
            family,
            tokenizer: tokenizer_keys(source.assets.tokenizer_or_none()?, config.vocab_size)?,
        })
    }

    /// The token at which llama.cpp ends a text because no document names one; `None` if one is named, or the vocabulary is one of
    /// characters, which llama.cpp never ends.
    pub(super) fn end_by_default(&self) -> Option<String> {
        let value = |key: &str| {
            let mut values = self.tokenizer.iter();
            Some(&values.find(|(name, _)| name == key)?.1)
        };
        if value("tokenizer.ggml.eos_token_id").is_some() {
            return None;
        }
        let model = value("tokenizer.ggml.model")?.text()?;
        let (_, end) = DEFAULT_ENDS.into_iter().find(|(name, _)| *name == model)?;
        let token = value("tokenizer.ggml.tokens")?.texts()?.get(end).copied();
        Some(match token {
            Some(token) => format!("{} (id {end})", String::from_utf8_lossy(token)),
            None => "none of the tokens".to_string(),
        })
    }
}

/// Writes `<name>.gguf`: the model in the form of llama.cpp's architectures `llama`, `qwen2`, `qwen3` and `gpt2`, named `name`. Vectors and
/// GPT-2's table of positions are F32, matrices are of `types`; q and k of `llama` have the rows of each half of a head alternating, matrices
/// of `gpt2` are transposed, and a tied head is left out. Without a tokenizer the file has none either; one that was refused refuses the file.
pub(super) fn recipe(
    source: &ExportSource,
    start: &Start,
    name: &str,
    types: GgufTypes,
    requantise: bool,
) -> Result<FileStream> {
    let config = &source.weights.config;
    let mut outputs = outputs(&source.weights, start.family, types, requantise)?;
    let file_type = types.file_type(type_of_most(&outputs));
    outputs.extend(divisors(config));
    let mut metadata = keys(config, start.family, name, file_type);
    metadata.extend(origin(source));
    metadata.extend(start.tokenizer.iter().cloned());
    let mut stream = FileStream::summed();
    stream.push_gguf(&format!("{name}.gguf"), &metadata, outputs, |name| {
        weight_of(name, start.family, config)
    })?;
    Ok(stream)
}

/// The keys about the origin of a model that are true of this one: all of a model that is only written again, the license if an
/// adapter was merged into it, none of a trained one, whose checkpoint does not have them either.
pub(super) fn origin(source: &ExportSource) -> Vec<(String, GgufValue)> {
    let all = source.adapter.is_empty();
    let stays = |key: &str| source.training.is_none() && (all || key.starts_with(LICENSE));
    source
        .assets
        .origin
        .iter()
        .filter(|(key, _)| stays(key))
        .cloned()
        .collect()
}

/// True if blocks of a type were asked for and no matrix of the model can have them, because their rows are no whole number of blocks.
pub(super) fn has_none_of(weights: &Weights, family: &str, types: GgufTypes) -> bool {
    let one = match types {
        GgufTypes::AsBase => return false,
        GgufTypes::One(one) => one,
        GgufTypes::Q4KM => TensorType::Q4K,
    };
    let can_have = |tensor: &Tensor| {
        let place = to_gguf(&tensor.name, family, &weights.config);
        place.is_some_and(|(name, order)| {
            let shape = &tensor.shape;
            let width = match order {
                Reordering::Transposed => shape.first(),
                _ => shape.last(),
            };
            !is_plain(&name, shape) && width.is_some_and(|width| one.for_width(*width) == one)
        })
    };
    !weights.tensors.iter().any(can_have)
}

/// Encodes every tensor for its place in the file; those that are refused are listed.
fn outputs(
    weights: &Weights,
    family: &str,
    types: GgufTypes,
    requantise: bool,
) -> Result<Vec<Tensor>> {
    let config = &weights.config;
    // The tensors are in the order of the model, wherever they come from.
    let planned = planned_parameters(config)?;
    let mut tensors: Vec<&Tensor> = weights.tensors.iter().collect();
    tensors.sort_by_cached_key(|tensor| {
        let place = planned.iter().position(|(name, _)| *name == tensor.name);
        place.unwrap_or(planned.len())
    });
    let mut outputs = Vec::new();
    for tensor in tensors {
        let (name, order) = need_place(&tensor.name, family, config)?;
        let shape = order.shape_in_file(&tensor.shape);
        let wanted = match types.of_matrix(&name, config) {
            _ if is_plain(&name, &shape) => Some(TensorType::F32),
            wanted => wanted,
        };
        let place = Place { name, shape, order };
        outputs.push(encoded(tensor, place, wanted, requantise));
    }
    all_encoded(outputs)
}
