//! The WGSL kernels, their twins, and the operations the model is built of.

pub mod adafactor_apply;
pub mod adafactor_moments;
pub mod adafactor_norm;
pub mod adafactor_sums;
pub mod adafactor_vector_apply;
pub mod adafactor_vector_moments;
pub mod adamw;
pub mod adamw_bf16;
pub mod apollo_apply;
pub mod apollo_combine;
pub mod apollo_project;
pub mod autodiff;
pub mod cast_bf16;
pub mod catalogue;
pub mod global_norm;
mod kernel;
pub mod launch;
pub mod linear;
pub mod noise;
pub mod ops;
mod packed;
mod readback;
pub mod sgd;
pub mod sgd_momentum;
pub mod stock;
pub mod sum_tree;
pub mod u32_copy;

pub use catalogue::CATALOGUE;
pub use kernel::{Access, Binding, COMMON, Kernel, Twin, Word, Words, read, update, write};
pub use launch::{Buffer, Launch, run};
pub use readback::{read_data, read_f32};
pub use stock::{attention, cross_entropy, embedding, gelu, layer_norm, rms_norm, rope, swiglu};

use burn::backend::Dispatch;
use burn::tensor::Tensor;
use ops::ModelOps;

/// Sizes of one attention call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttentionShape {
    /// B.
    pub batch_size: usize,
    /// T, the queries of each sequence.
    pub query_len: usize,
    /// Keys before the first query.
    pub offset: usize,
    /// Query heads.
    pub num_attention_heads: usize,
    /// Key and value heads.
    pub num_key_value_heads: usize,
    /// H.
    pub head_dim: usize,
}

/// `x [n, k] · w [m, k]ᵀ → [n, m]`. The weights are f32 or packed bf16; their gradient is f32.
pub fn linear(x: Tensor<2>, w: Tensor<2>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::linear(x.into_dispatch(), w.into_dispatch()))
}

/// `x [n, k] · w [k, m] → [n, m]`, the layout of GPT-2's Conv1D. The weights are f32 or packed bf16; their gradient is f32.
pub fn conv1d(x: Tensor<2>, w: Tensor<2>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::conv1d(x.into_dispatch(), w.into_dispatch()))
}
