//! All kernels, one line each, in the order of `shaders/README.md`.

use super::Kernel;
use super::attention::kernels as attention;
use super::linear::kernels as linear;
use super::{column_sum, cross_entropy, elementwise, embedding, layer_norm, rms_norm, rope, u32_copy};

/// Every kernel; the stems of `shaders/` are exactly these names and `common`.
pub static CATALOGUE: &[&Kernel] = &[
    &u32_copy::KERNEL,
    &linear::FORWARD,
    &linear::FORWARD_BF16,
    &linear::ROW,
    &linear::ROW_BF16,
    &linear::FORWARD_ANY,
    &linear::BACKWARD_INPUT,
    &linear::BACKWARD_INPUT_BF16,
    &linear::BACKWARD_INPUT_ANY,
    &linear::BACKWARD_WEIGHT,
    &linear::BACKWARD_WEIGHT_ANY,
    &linear::FORWARD_BLOCK,
    &linear::FORWARD_BLOCK_BF16,
    &linear::BACKWARD_INPUT_BLOCK,
    &linear::BACKWARD_INPUT_BLOCK_BF16,
    &linear::BACKWARD_WEIGHT_BLOCK,
    &linear::FORWARD_ANY_BLOCK,
    &linear::BACKWARD_INPUT_ANY_BLOCK,
    &linear::BACKWARD_WEIGHT_ANY_BLOCK,
    &embedding::FORWARD,
    &embedding::LINKS,
    &embedding::BACKWARD,
    &cross_entropy::PARTIALS,
    &cross_entropy::FORWARD,
    &cross_entropy::LOSS_SUM,
    &cross_entropy::BACKWARD,
    &rms_norm::FORWARD,
    &rms_norm::BACKWARD_INPUT,
    &rms_norm::BACKWARD_WEIGHT,
    &layer_norm::FORWARD,
    &layer_norm::BACKWARD_INPUT,
    &layer_norm::BACKWARD_WEIGHT,
    &column_sum::KERNEL,
    &rope::KERNEL,
    &attention::FORWARD,
    &attention::BACKWARD_QUERY,
    &attention::BACKWARD_KEY_VALUE,
    &attention::HEAD_PAD,
    &elementwise::SWIGLU_FORWARD,
    &elementwise::SWIGLU_BACKWARD,
    &elementwise::GELU_FORWARD,
    &elementwise::GELU_BACKWARD,
    &elementwise::BIAS_ADD,
    &elementwise::RESIDUAL_ADD,
];
