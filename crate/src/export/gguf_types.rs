//! Chooses the types in which the tensors of a GGUF file are written.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::options::ExportOptions;
use crate::config::ModelConfig;
use crate::error::{Error, Refusal, Result, refuse_all, word};
use crate::families::{HEAD, from_gguf, is_of_config, q4_k_m, to_gguf};
use crate::formats::{FileTensor, GgmlType, TensorType};
use crate::state::{Bytes, Encoded, Reordering, Tensor};

/// Word that requests the types of the base.
const AS_BASE: &str = "as-base";
/// Word that requests llama.cpp's mixture of Q4_K and Q6_K.
const Q4_K_M: &str = "q4_k_m";

/// Types of the matrices of a GGUF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GgufTypes {
    /// Types of the base, and Q8_0 for types that cannot be written. Without a base, the type that each matrix has.
    AsBase,
    /// One type for all matrices.
    One(TensorType),
    /// Q4_K, and Q6_K where precision matters most ([`q4_k_m`]).
    Q4KM,
}

impl GgufTypes {
    /// Parses a word: `as-base`, `q4_k_m`, or a type that can be written, such as `f16`.
    ///
    /// # Errors
    /// `export.gguf.type` for any other word.
    pub fn from_word(word: &str) -> Result<Self> {
        match word {
            AS_BASE => Ok(Self::AsBase),
            Q4_K_M => Ok(Self::Q4KM),
            _ => {
                let unknown = || {
                    Refusal::new(word!("export.gguf.type"))
                        .of("gguf")
                        .expected(words().collect::<Vec<_>>().join(", "))
                        .found(word)
                };
                Ok(Self::One(TensorType::of_word(word).ok_or_else(unknown)?))
            }
        }
    }

    /// The types that an export asks for; those of the base if it names none.
    pub(super) fn of(options: &ExportOptions) -> Result<Self> {
        Self::from_word(options.types.as_deref().unwrap_or(AS_BASE))
    }

    /// The type of the matrix `name` in the file; `None` for that of the base.
    pub(super) fn of_matrix(self, name: &str, config: &ModelConfig) -> Option<TensorType> {
        match self {
            Self::AsBase => None,
            Self::One(one) => Some(one),
            Self::Q4KM => Some(q4_k_m(
                name,
                config.num_hidden_layers,
                config.tie_word_embeddings,
            )),
        }
    }

    /// llama.cpp's number for a file whose matrices have these types; those of a base are `most`, if that is known.
    pub(super) fn file_type(self, most: Option<TensorType>) -> Option<u32> {
        match self {
            Self::AsBase => most.map(file_type),
            Self::One(one) => Some(file_type(one)),
            Self::Q4KM => Some(15),
        }
    }
}

/// Lists every word of [`GgufTypes::from_word`].
pub(super) fn words() -> impl Iterator<Item = &'static str> {
    [AS_BASE, Q4_K_M]
        .into_iter()
        .chain(TensorType::ALL.map(TensorType::word))
}

/// True for a tensor of the file that keeps its type whatever the type of the matrices: norms, biases, and GPT-2's table of positions, which
/// llama.cpp adds in F32.
pub(super) fn is_plain(name: &str, shape: &[u64]) -> bool {
    // llama.cpp computes convolutions with taps of F32 alone.
    const PLAIN: [&str; 3] = [
        "position_embd.weight",
        "shortconv.conv.weight",
        "ssm_conv1d.weight",
    ];
    shape.len() < 2 || PLAIN.iter().any(|end| name.ends_with(end))
}

/// The type in which the tensor `found` of the base is replaced.
pub(super) fn replaced(found: &FileTensor) -> TensorType {
    found
        .ggml_type()
        .and_then(TensorType::of_ggml)
        .unwrap_or(TensorType::Q8_0)
}

/// The tensors of a file; the refusals of those that cannot be written are listed together.
pub(super) fn all_encoded(tensors: Vec<Result<Tensor>>) -> Result<Vec<Tensor>> {
    let (mut encoded, mut refusals) = (Vec::new(), Vec::new());
    for tensor in tensors {
        match tensor {
            Ok(tensor) => encoded.push(tensor),
            Err(Error::Refused(list)) => refusals.extend(list),
            Err(error) => return Err(error),
        }
    }
    refuse_all(refusals)?;
    Ok(encoded)
}

/// GGUF's name of a parameter of the model, and the order of its elements in the file.
///
/// # Errors
/// `export.gguf.arch` for a tensor that the architecture does not have.
pub(super) fn need_place(
    name: &str,
    family: &str,
    config: &ModelConfig,
) -> Result<(String, Reordering)> {
    let unnamed = || {
        Refusal::new(word!("export.gguf.arch"))
            .of("gguf")
            .subject(name)
            .expected(format!("a tensor of {family}"))
    };
    Ok(to_gguf(name, family, config).ok_or_else(unnamed)?)
}

/// A name, and the number of others that are left out.
pub(super) fn and_more(first: String, others: usize) -> String {
    match others {
        0 => first,
        _ => format!("{first} and {others} more"),
    }
}

/// Name, shape and order of a tensor in the file.
pub(super) struct Place {
    pub(super) name: String,
    /// Row-major shape in the file.
    pub(super) shape: Vec<u64>,
    pub(super) order: Reordering,
}

/// Encodes the model's tensor for its place in the file, in the type `wanted`, or the type that its rows fall back to
/// if they are no whole number of blocks; without one in the type that it has, even in blocks that cannot be written,
/// as long as they are copied. Stored bytes that have this type already are copied.
///
/// # Errors
/// `export.gguf.quantised-source` for blocks that would become other blocks, unless `requantise` allows it.
pub(super) fn encoded(
    tensor: &Tensor,
    place: Place,
    wanted: Option<TensorType>,
    requantise: bool,
) -> Result<Tensor> {
    let Place { name, shape, order } = place;
    let width = shape.last().copied().unwrap_or(1);
    refuse_state(tensor)?;
    let found = tensor.ggml_type();
    let own = found.and_then(TensorType::of_ggml);
    let of_blocks = found.is_some_and(is_blocks);
    let (to, kept) = match wanted {
        Some(one) => {
            let to = one.for_width(width);
            (to, found.filter(|found| *found == to.ggml()))
        }
        None => {
            // Types without an encoder become the type that is nearest to lossless.
            let nearest = if of_blocks {
                TensorType::Q8_0
            } else {
                TensorType::F32
            };
            let to = own.unwrap_or(nearest).for_width(width);
            (to, found.filter(|_| of_blocks || own.is_some()))
        }
    };
    if let (Some(span), Some(ggml_type)) = (tensor.span(), kept)
        && tensor.lies_as(order)
    {
        let bytes = Bytes::of_source(Rc::clone(&span.source), span.begin, span.bytes);
        return Ok(Tensor::parameter(&name, &ggml_type.dtype(), &shape, bytes));
    }
    if of_blocks && is_blocks(to.ggml()) && !requantise {
        let hint = "ask for f32, f16 or bf16, or allow blocks to be encoded a second time (--requantise, in a browser requantise)";
        return Err(Refusal::new(word!("export.gguf.quantised-source"))
            .of("gguf")
            .subject(&tensor.name)
            .expected(&tensor.dtype)
            .found(to.ggml().dtype())
            .hint(hint)
            .into());
    }
    Ok(Tensor::encoded(
        &name,
        &shape,
        Encoded::new(tensor.clone(), order, to),
    ))
}

/// Refuses a tensor that is no parameter of a model.
pub(super) fn refuse_state(tensor: &Tensor) -> Result<()> {
    if !tensor.is_state() {
        return Ok(());
    }
    Err(Refusal::new(word!("export.gguf.type"))
        .of("gguf")
        .subject(&tensor.name)
        .expected("a tensor of the model")
        .found(&tensor.dtype)
        .into())
}

fn is_blocks(ggml_type: GgmlType) -> bool {
    ggml_type.dtype().starts_with("GGML:")
}

/// The type that most values of these tensors have.
pub(super) fn type_of_most(outputs: &[Tensor]) -> Option<TensorType> {
    let mut of_type = BTreeMap::<u32, u128>::new();
    for tensor in outputs {
        if let Some(ggml_type) = tensor.ggml_type() {
            *of_type.entry(ggml_type.id).or_default() += elements(&tensor.shape);
        }
    }
    let (id, _) = of_type.into_iter().max_by_key(|(_, values)| *values)?;
    TensorType::of_ggml(GgmlType::from_id(id))
}

/// The weight that a tensor of a GGUF file represents, and its order there; none for the head of a tied model, because it is the
/// embedding.
pub(super) fn weight_of(
    own: &str,
    family: &str,
    config: &ModelConfig,
) -> Option<(String, Reordering)> {
    if is_of_config(own, config) {
        return None;
    }
    let place = from_gguf(own, family, config).unwrap_or((own.to_string(), Reordering::Same));
    Some(place).filter(|(name, _)| !config.tie_word_embeddings || name != HEAD)
}

/// The number of values of a tensor.
pub(super) fn elements(shape: &[u64]) -> u128 {
    shape.iter().map(|&dim| u128::from(dim)).product()
}

/// llama.cpp's number for a file whose matrices have this type.
fn file_type(to: TensorType) -> u32 {
    match to {
        TensorType::F32 => 0,
        TensorType::F16 => 1,
        TensorType::Q4_0 => 2,
        TensorType::Q4_1 => 3,
        TensorType::Q8_0 => 7,
        TensorType::Q5_0 => 8,
        TensorType::Q5_1 => 9,
        // This is Q4_K_S: all matrices have the same type.
        TensorType::Q4K => 14,
        TensorType::Q6K => 18,
        TensorType::Bf16 => 32,
    }
}
