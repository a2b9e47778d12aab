//! All kernels, one line each; their order has no meaning. `shaders/README.md` describes them.

use super::attention::kernels as attention;
use super::linear::kernels as linear;
use super::{AnyKernel, StorageType};
use super::{column_sum, cross_entropy, elementwise, embedding, layer_norm, rms_norm, rope, u32_copy};

/// Every kernel; the stems of `shaders/` are those of these kernels and `common`.
pub fn catalogue() -> impl Iterator<Item = &'static AnyKernel> {
    ALIKE.iter().copied().chain(STORED.iter().flatten().copied())
}

/// Those of f32, or of whatever dtype their parameters say.
static ALIKE: &[&AnyKernel] = &[
    u32_copy::KERNEL.any(),
    linear::BACKWARD_WEIGHT.any(),
    linear::BACKWARD_WEIGHT_ANY.any(),
    super::adafactor_apply::KERNEL.any(),
    super::adafactor_moments::KERNEL.any(),
    super::adafactor_norm::KERNEL.any(),
    super::adafactor_sums::KERNEL.any(),
    super::adafactor_vector_apply::KERNEL.any(),
    super::adafactor_vector_moments::KERNEL.any(),
    super::adamw::KERNEL.any(),
    super::adamw::WIDE.any(),
    super::adamw_bf16::KERNEL.any(),
    super::apollo_apply::KERNEL.any(),
    super::apollo_combine::KERNEL.any(),
    super::apollo_project::KERNEL.any(),
    super::cast_bf16::KERNEL.any(),
    super::global_norm::KERNEL.any(),
    super::scale::KERNEL.any(),
    super::sgd::KERNEL.any(),
    super::sgd_momentum::KERNEL.any(),
    super::sum_tree::KERNEL.any(),
    linear::BACKWARD_WEIGHT_BLOCK.any(),
    linear::BACKWARD_WEIGHT_ANY_BLOCK.any(),
    embedding::LINKS.any(),
    embedding::BACKWARD.any(),
    cross_entropy::PARTIALS.any(),
    cross_entropy::FORWARD.any(),
    cross_entropy::LOSS_SUM.any(),
    cross_entropy::BACKWARD.any(),
    rms_norm::FORWARD.any(),
    rms_norm::FORWARD_WIDE.any(),
    rms_norm::FORWARD_GROUP.any(),
    rms_norm::ADD_FORWARD.any(),
    rms_norm::ADD_FORWARD_WIDE.any(),
    rms_norm::ADD_FORWARD_GROUP.any(),
    rms_norm::BACKWARD.any(),
    rms_norm::BACKWARD_WIDE.any(),
    rms_norm::BACKWARD_GROUP.any(),
    layer_norm::FORWARD.any(),
    layer_norm::BACKWARD_INPUT.any(),
    layer_norm::BACKWARD_WEIGHT.any(),
    column_sum::KERNEL.any(),
    rope::KERNEL.any(),
    rope::WIDE.any(),
    attention::FORWARD.any(),
    attention::FORWARD_BLOCK.any(),
    attention::BACKWARD_QUERY.any(),
    attention::BACKWARD_QUERY_BLOCK.any(),
    attention::BACKWARD_KEY_VALUE.any(),
    attention::BACKWARD_KEY_VALUE_BLOCK.any(),
    attention::HEAD_PAD.any(),
    elementwise::SWIGLU_FORWARD.any(),
    elementwise::SWIGLU_FORWARD_WIDE.any(),
    elementwise::SWIGLU_BACKWARD.any(),
    elementwise::SWIGLU_BACKWARD_WIDE.any(),
    elementwise::GELU_FORWARD.any(),
    elementwise::GELU_BACKWARD.any(),
    elementwise::BIAS_ADD.any(),
    elementwise::RESIDUAL_ADD.any(),
];

/// Those of each storage type of the weights.
static STORED: &[[&AnyKernel; StorageType::ALL.len()]] = &[
    linear::FORWARD.all(),
    linear::ROW.all(),
    linear::FORWARD_BLOCK.all(),
    linear::FORWARD_TILE.all(),
    linear::FORWARD_ANY.all(),
    linear::FORWARD_ANY_BLOCK.all(),
    linear::BACKWARD_INPUT.all(),
    linear::BACKWARD_INPUT_BLOCK.all(),
    linear::BACKWARD_INPUT_ANY.all(),
    linear::BACKWARD_INPUT_ANY_BLOCK.all(),
    linear::BACKWARD_BLOCK.all(),
    linear::BACKWARD_TILE.all(),
    embedding::FORWARD.all(),
];
