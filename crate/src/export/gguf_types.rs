//! Chooses the types in which the tensors of a GGUF file are written.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::config::ModelConfig;
use crate::error::{Refusal, Result, word};
use crate::families::{HEAD, ROPE_FREQS, from_gguf, q4_k_m};
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
                let refusal = || {
                    Refusal::new(word!("export.gguf.type"))
                        .of("gguf")
                        .expected(words().collect::<Vec<_>>().join(", "))
                        .found(word)
                };
                TensorType::of_word(word)
                    .map(Self::One)
                    .ok_or_else(|| refusal().into())
            }
        }
    }

    /// Returns the type of the matrix `name` in the file; `None` for that of the base.
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

    /// Returns llama.cpp's number for a file whose matrices have these types; `None` for those of a base.
    pub(super) fn file_type(self) -> Option<u32> {
        match self {
            Self::AsBase => None,
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

/// Returns whether a tensor of the file keeps its type whatever the type of the matrices: norms, biases, and GPT-2's table of positions, which
/// llama.cpp adds in F32.
pub(super) fn is_plain(name: &str, shape: &[u64]) -> bool {
    shape.len() < 2 || name == "position_embd.weight"
}

/// Returns the type in which the tensor `found` of the base is replaced.
pub(super) fn replaced(found: &FileTensor) -> TensorType {
    found
        .ggml_type()
        .and_then(TensorType::of_ggml)
        .unwrap_or(TensorType::Q8_0)
}

/// Requested type of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The type that it has; even blocks that cannot be written, as long as they are copied.
    AsStored,
    /// This type, or the one that its rows fall back to.
    One(TensorType),
}

/// Name, shape and order of a tensor in the file.
pub(super) struct Place {
    pub(super) name: String,
    /// Row-major shape in the file.
    pub(super) shape: Vec<u64>,
    pub(super) order: Reordering,
}

/// Encodes the model's tensor for its place in the file, in the type `wanted`, or the type that its rows fall back to if they are no whole
/// number of blocks. Stored bytes that have this type already are copied.
///
/// # Errors
/// `export.gguf.quantised-source` for blocks that would become other blocks, unless `requantise` allows it.
pub(super) fn encoded(
    tensor: &Tensor,
    place: Place,
    wanted: Wanted,
    requantise: bool,
) -> std::result::Result<Tensor, Box<Refusal>> {
    let Place { name, shape, order } = place;
    let width = shape.last().copied().unwrap_or(1);
    refuse_state(tensor)?;
    let found = tensor.ggml_type();
    let own = found.and_then(TensorType::of_ggml);
    let to = match wanted {
        Wanted::One(one) => one.for_width(width),
        // Types without an encoder become the type that is nearest to lossless.
        Wanted::AsStored => own
            .unwrap_or(if found.is_some_and(is_blocks) {
                TensorType::Q8_0
            } else {
                TensorType::F32
            })
            .for_width(width),
    };
    let kept = match wanted {
        Wanted::AsStored => found.filter(|found| is_blocks(*found) || own.is_some()),
        Wanted::One(_) => Some(to.ggml()).filter(|to| found == Some(*to)),
    };
    if let (Some(span), Some(ggml_type)) = (tensor.span(), kept)
        && tensor.lies_as(order)
    {
        let bytes = Bytes::of_source(Rc::clone(&span.source), span.begin, span.bytes);
        return Ok(Tensor::parameter(&name, &ggml_type.dtype(), &shape, bytes));
    }
    if found.is_some_and(is_blocks) && is_blocks(to.ggml()) && !requantise {
        let refusal = Refusal::new(word!("export.gguf.quantised-source"))
            .of("gguf")
            .subject(&tensor.name);
        let hint = "ask for f32, f16 or bf16, or allow blocks to be encoded a second time (--requantise, in a browser requantise)";
        return Err(Box::new(
            refusal
                .expected(&tensor.dtype)
                .found(to.ggml().dtype())
                .hint(hint),
        ));
    }
    Ok(Tensor::encoded(
        &name,
        &shape,
        Encoded::new(tensor.clone(), order, to),
    ))
}

/// Refuses a tensor that is no parameter of a model.
pub(super) fn refuse_state(tensor: &Tensor) -> std::result::Result<(), Box<Refusal>> {
    if !tensor.is_state() {
        return Ok(());
    }
    let refusal = Refusal::new(word!("export.gguf.type"))
        .of("gguf")
        .subject(&tensor.name);
    let refusal = refusal.expected("a tensor of the model");
    Err(Box::new(refusal.found(&tensor.dtype)))
}

fn is_blocks(ggml_type: GgmlType) -> bool {
    ggml_type.dtype().starts_with("GGML:")
}

/// Returns the type that most values of these tensors have.
pub(super) fn type_of_most(outputs: &[Tensor]) -> Option<TensorType> {
    let mut of_type = BTreeMap::<u32, u128>::new();
    for tensor in outputs {
        let Some(ggml_type) = tensor.ggml_type() else {
            continue;
        };
        *of_type.entry(ggml_type.id).or_default() += elements(&tensor.shape);
    }
    let (id, _) = of_type.into_iter().max_by_key(|(_, values)| *values)?;
    TensorType::of_ggml(GgmlType::from_id(id))
}

/// Returns the weight that a tensor of a GGUF file represents, and its order there; none for the head of a tied model, because it is the
/// embedding.
pub(super) fn weight_of(
    own: &str,
    family: &str,
    config: &ModelConfig,
) -> Option<(String, Reordering)> {
    if own == ROPE_FREQS {
        return None;
    }
    let place = from_gguf(own, family, config).unwrap_or((own.to_string(), Reordering::Same));
    Some(place).filter(|(name, _)| !config.tie_word_embeddings || name != HEAD)
}

/// Returns the number of values of a tensor.
pub(super) fn elements(shape: &[u64]) -> u128 {
    shape.iter().map(|&dim| u128::from(dim)).product()
}

/// Returns llama.cpp's number for a file whose matrices have this type.
pub(super) fn file_type(to: TensorType) -> u32 {
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
