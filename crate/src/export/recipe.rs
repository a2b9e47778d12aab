//! A model as a new GGUF file, whatever it came from.

use super::architecture::{architecture, divisors, keys};
use super::gguf_types::{GgufTypes, encoded, is_plain};
use crate::bundle::{FileStream, GgufOutput, Layout, StreamTensor, TensorType, to_gguf, tokenizer_keys};
use crate::error::{Refusal, Result, word};
use crate::model::Model;
use crate::tokenizer::Tokenizer;

/// `<name>.gguf`: the model as llama.cpp's architectures `llama`, `qwen2`, `qwen3` and `gpt2` have it, called `name`. Vectors and GPT-2's
/// table of positions are F32, matrices are of `types`; q and k of `llama` have the rows of each half of a head in turn, matrices of `gpt2`
/// are transposed, and a tied head is left out. Without a tokenizer the file has none either.
///
/// # Errors
/// `export.gguf.arch` for a model that none of the architectures describes, `export.gguf.tokenizer` for a tokenizer that GGUF cannot hold,
/// `export.gguf.type` for a type that cannot be written. While the stream is read, `export.overflow` for values beyond their type.
pub fn gguf_recipe(model: &Model, tokenizer: Option<&Tokenizer>, name: &str, types: GgufTypes) -> Result<FileStream> {
    let config = model.config();
    let family = architecture(config)?;
    let types = types.without_base(model.precision());
    let mut metadata = keys(config, family, name, types.file_type());
    metadata.extend(tokenizer_keys(tokenizer, config.vocab_size)?);
    let output = |tensor: StreamTensor| -> Result<GgufOutput> {
        let unnamed = || Refusal::new(word!("export.gguf.arch")).of("gguf").subject(&tensor.name).expected(format!("a tensor of {family}"));
        let (name, layout) = to_gguf(&tensor.name, family, config).ok_or_else(unnamed)?;
        let mut shape: Vec<u64> = tensor.shape.iter().map(|&dim| dim as u64).collect();
        if layout == Layout::Transposed {
            shape.reverse();
        }
        let matrix = if is_plain(&name, &shape) { None } else { types.of_matrix(&name, config) };
        Ok(encoded(&tensor, name, shape, layout, matrix.unwrap_or(TensorType::F32)))
    };
    let mut outputs = model.stream_tensors().into_iter().map(output).collect::<Result<Vec<_>>>()?;
    outputs.extend(divisors(config));
    let mut stream = FileStream::new();
    stream.push_gguf(&format!("{name}.gguf"), &metadata, outputs)?;
    Ok(stream)
}
