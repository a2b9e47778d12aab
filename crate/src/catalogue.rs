//! All kernels, one line each; their order has no meaning. `shaders/README.md` describes them.

use crate::gpu::{AnyKernel, StorageType, copy};
use crate::ops::attention::kernels as attention;
use crate::ops::linear::kernels as linear;
use crate::ops::loss::cross_entropy;
use crate::ops::norm::{layer, rms};
use crate::ops::{column_sum, elementwise, embedding, rope};

/// Every kernel; the stems of `shaders/` are those of these kernels and `common`.
pub fn catalogue() -> impl Iterator<Item = &'static AnyKernel> {
    ALIKE.iter().copied().chain(STORED.iter().flatten().copied())
}

/// Those of f32, or of whatever dtype their parameters say.
static ALIKE: &[&AnyKernel] = &[
    copy::KERNEL.any(),
    linear::BACKWARD_WEIGHT.any(),
    linear::BACKWARD_WEIGHT_ANY.any(),
    crate::optim::adafactor::apply::KERNEL.any(),
    crate::optim::adafactor::moments::KERNEL.any(),
    crate::optim::adafactor::norm::KERNEL.any(),
    crate::optim::adafactor::sums::KERNEL.any(),
    crate::optim::adafactor::vector_apply::KERNEL.any(),
    crate::optim::adafactor::vector_moments::KERNEL.any(),
    crate::optim::adamw::kernel::KERNEL.any(),
    crate::optim::adamw::kernel::WIDE.any(),
    crate::optim::adamw::packed::KERNEL.any(),
    crate::optim::apollo::apply::KERNEL.any(),
    crate::optim::apollo::combine::KERNEL.any(),
    crate::optim::apollo::project::KERNEL.any(),
    crate::ops::cast_bf16::KERNEL.any(),
    crate::optim::norm::blocks::KERNEL.any(),
    crate::ops::scale::KERNEL.any(),
    crate::optim::sgd::kernel::KERNEL.any(),
    crate::optim::sgd::momentum::KERNEL.any(),
    crate::optim::norm::tree::KERNEL.any(),
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
