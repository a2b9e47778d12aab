//! The operations that models are built of. Each is one kernel or several, with its gradient.
//!
//! The functions here work on tensors of any device; on an autodiff device they are differentiable. A buffer is changed in place only if it
//! is uniquely owned, that is, if no other handle shares it. Rows are tokens: `[B·T, C]`, so that nothing is ever transposed. Weights may
//! be f32 or packed bf16 (for storage only); everything else is f32.

#![allow(
    clippy::needless_range_loop,
    reason = "twins index as their formula does"
)]

pub mod attention;
pub mod blocks;
pub mod cap;
pub mod cast_bf16;
pub mod causal_conv;
pub mod column_sum;
pub mod delta;
pub mod dropout;
pub mod elementwise;
pub mod embedding;
pub mod linear;
pub mod loss;
pub mod low_rank;
pub mod norm;
mod operation;
pub mod packed;
pub mod packed_qkv;
pub mod residual;
pub mod rope;
pub mod scale;
pub mod short_conv;
pub mod sigmoid;
pub mod tape;
mod weights;

pub use attention::{AttentionShape, MAX_HEAD_DIM, attention};
pub use blocks::{gated, self_attention};
pub use cap::capped;
pub use causal_conv::causal_conv;
pub use delta::{DeltaGates, DeltaShape, delta_rule, delta_rule_from};
pub use dropout::{DropoutStep, Mask, dropout};
pub use elementwise::{
    GateFunction, bias_add, gated_unit, gelu, gelu_bias, residual_add, swiglu_of_halves,
};
pub use embedding::{embedding, embedding_backward};
pub use linear::{conv1d, linear};
pub(crate) use loss::head::head_evaluation;
pub use loss::head::{HeadRows, head_loss, head_loss_of, packed_head_loss};
pub use low_rank::{Adapted, low_rank};
pub use norm::layer::{add_layer_norm, layer_norm};
pub use norm::rms::{Constants as NormConstants, add_rms_norm, rms_norm};
pub(crate) use packed::embedding_of_parts;
pub use packed::{PackedMatrix, packed_conv1d, packed_embedding, packed_linear};
pub use packed_qkv::attention_of_packed_qkv;
pub use rope::{Pairing, Positions, rope, rope_of_part};
pub use scale::scaled;
pub use short_conv::{ConvShape, short_conv};
pub use sigmoid::{sigmoid_gate, silu};

use crate::gpu::Kernels;

/// The kernels of all operations.
pub(crate) const KERNELS: [Kernels; 21] = [
    attention::kernels::KERNELS,
    cap::KERNELS,
    cast_bf16::KERNELS,
    causal_conv::KERNELS,
    column_sum::KERNELS,
    delta::kernels::KERNELS,
    dropout::KERNELS,
    elementwise::KERNELS,
    embedding::KERNELS,
    linear::joint::KERNELS,
    linear::kernels::KERNELS,
    loss::cross_entropy::KERNELS,
    low_rank::KERNELS,
    norm::layer::KERNELS,
    norm::rms::KERNELS,
    packed_qkv::KERNELS,
    residual::KERNELS,
    rope::KERNELS,
    scale::KERNELS,
    short_conv::KERNELS,
    sigmoid::KERNELS,
];
