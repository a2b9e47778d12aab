//! The types in which the tensors of a GGUF file are written.

use crate::bundle::{EncodedTensor, GgmlType, GgufContents, GgufOutput, GgufRecord, Layout, StreamTensor, StreamValues, TensorType};
use crate::config::{ModelConfig, Precision};
use crate::error::{Refusal, Result, word};

/// What asks for the types of the base.
const AS_BASE: &str = "as-base";
/// What asks for llama.cpp's mixture of Q4_K and Q6_K.
const Q4_K_M: &str = "q4_k_m";

/// The types of the matrices of a GGUF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GgufTypes {
    /// Those of the base, and Q8_0 for what cannot be written as its base has it. Without a base, the type that the model's matrices have.
    AsBase,
    /// One for all.
    One(TensorType),
    /// Q4_K, and Q6_K where it matters most ([`TensorType::q4_k_m`]).
    Q4KM,
}

impl GgufTypes {
    /// What a word asks for: `as-base`, `q4_k_m`, or a type that can be written, such as `f16`. Others are `export.gguf.type`.
    pub fn from_word(word: &str) -> Result<Self> {
        match word {
            AS_BASE => Ok(Self::AsBase),
            Q4_K_M => Ok(Self::Q4KM),
            _ => {
                let refusal = || Refusal::new(word!("export.gguf.type")).of("gguf").expected(words()).found(word);
                TensorType::of_word(word).map(Self::One).ok_or_else(|| refusal().into())
            }
        }
    }

    /// The same where there is no base: the type that the model's matrices have stands for it.
    pub(super) fn without_base(self, precision: Precision) -> Self {
        match (self, precision) {
            (Self::AsBase, Precision::F32) => Self::One(TensorType::F32),
            (Self::AsBase, Precision::Bf16) => Self::One(TensorType::Bf16),
            (types, _) => types,
        }
    }

    /// The type of the matrix `name` in the file; `None` for that of the base.
    pub(super) fn of_matrix(self, name: &str, config: &ModelConfig) -> Option<TensorType> {
        match self {
            Self::AsBase => None,
            Self::One(one) => Some(one),
            Self::Q4KM => Some(TensorType::q4_k_m(name, config.num_hidden_layers, config.tie_word_embeddings)),
        }
    }

    /// llama.cpp's number of a file whose matrices have these types; `None` for those of a base.
    pub(super) fn file_type(self) -> Option<u32> {
        match self {
            Self::AsBase => None,
            Self::One(one) => Some(file_type(one)),
            Self::Q4KM => Some(15),
        }
    }
}

/// Every word of [`GgufTypes::from_word`].
fn words() -> String {
    [AS_BASE, Q4_K_M].into_iter().chain(TensorType::ALL.map(TensorType::word)).collect::<Vec<_>>().join(", ")
}

/// Whether a tensor of the file stays what it is whatever the type of the matrices: norms, biases, and GPT-2's table of positions, which
/// llama.cpp adds in F32.
pub(super) fn is_plain(name: &str, shape: &[u64]) -> bool {
    shape.len() < 2 || name == "position_embd.weight"
}

/// The type in which a tensor is replaced that the base has in `found`.
pub(super) fn replaced(found: GgmlType) -> TensorType {
    TensorType::of_ggml(found).unwrap_or(TensorType::Q8_0)
}

/// The model's tensor as the tensor `name` of the file, of this shape and layout there, in the type `wanted`, or what a row falls back to
/// that its blocks do not divide.
pub(super) fn encoded(tensor: &StreamTensor, name: String, shape: Vec<u64>, layout: Layout, wanted: TensorType) -> GgufOutput {
    let to = wanted.for_width(shape.last().copied().unwrap_or(1));
    let contents = match &tensor.values {
        StreamValues::Device(values) => GgufContents::Encoded(EncodedTensor::new(&name, values.clone(), &tensor.shape, layout, to)),
        StreamValues::U64(value) => GgufContents::Bytes(value.to_le_bytes().to_vec()),
    };
    GgufOutput { record: GgufRecord { name, ggml_type: to.ggml(), shape }, contents }
}

/// llama.cpp's number of a file whose matrices have this type.
pub(super) fn file_type(to: TensorType) -> u32 {
    match to {
        TensorType::F32 => 0,
        TensorType::F16 => 1,
        TensorType::Q4_0 => 2,
        TensorType::Q4_1 => 3,
        TensorType::Q8_0 => 7,
        TensorType::Q5_0 => 8,
        TensorType::Q5_1 => 9,
        // Q4_K_S: all matrices alike.
        TensorType::Q4K => 14,
        TensorType::Q6K => 18,
        TensorType::Bf16 => 32,
    }
}
