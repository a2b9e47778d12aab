//! All kernels, one line each; their order has no meaning. `shaders/README.md` describes them.

use crate::gpu::{AnyKernel, StorageType, copy};
use crate::ops::attention::kernels as attention;
use crate::ops::linear::kernels as linear;
use crate::ops::loss::cross_entropy;
use crate::ops::norm::{layer, rms};
use crate::ops::{cast_bf16, column_sum, elementwise, embedding, rope, scale};
use crate::optim::{adafactor, adamw, apollo, norm, sgd};

/// Every kernel; the stems of `shaders/` are those of these kernels and `common`.
pub fn catalogue() -> impl Iterator<Item = &'static AnyKernel> {
    ALIKE.iter().copied().chain(STORED.iter().flatten().copied())
}

/// Those of f32, or of whatever dtype their parameters say.
static ALIKE: &[&AnyKernel] = &[
    copy::KERNEL.any(),
    linear::BACKWARD_WEIGHT.any(),
    linear::BACKWARD_WEIGHT_ANY.any(),
    adafactor::apply::KERNEL.any(),
    adafactor::moments::KERNEL.any(),
    adafactor::norm::KERNEL.any(),
    adafactor::sums::KERNEL.any(),
    adafactor::vector_apply::KERNEL.any(),
    adafactor::vector_moments::KERNEL.any(),
    adamw::kernel::KERNEL.any(),
    adamw::kernel::WIDE.any(),
    adamw::packed::KERNEL.any(),
    apollo::apply::KERNEL.any(),
    apollo::combine::KERNEL.any(),
    apollo::project::KERNEL.any(),
    cast_bf16::KERNEL.any(),
    norm::blocks::KERNEL.any(),
    scale::KERNEL.any(),
    sgd::kernel::KERNEL.any(),
    sgd::momentum::KERNEL.any(),
    norm::tree::KERNEL.any(),
    linear::BACKWARD_WEIGHT_BLOCK.any(),
    linear::BACKWARD_WEIGHT_ANY_BLOCK.any(),
    embedding::LINKS.any(),
    embedding::BACKWARD.any(),
    cross_entropy::PARTIALS.any(),
    cross_entropy::FORWARD.any(),
    cross_entropy::LOSS_SUM.any(),
    cross_entropy::BACKWARD.any(),
    rms::FORWARD.any(),
    rms::FORWARD_WIDE.any(),
    rms::FORWARD_GROUP.any(),
    rms::ADD_FORWARD.any(),
    rms::ADD_FORWARD_WIDE.any(),
    rms::ADD_FORWARD_GROUP.any(),
    rms::BACKWARD.any(),
    rms::BACKWARD_WIDE.any(),
    rms::BACKWARD_GROUP.any(),
    layer::FORWARD.any(),
    layer::BACKWARD_INPUT.any(),
    layer::BACKWARD_WEIGHT.any(),
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
