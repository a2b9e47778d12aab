//! All kernels, one line each, in the order of `shaders/README.md`.

use super::Kernel;
use super::linear::kernels as linear;
use super::u32_copy;

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
    &super::adafactor_apply::KERNEL,
    &super::adafactor_moments::KERNEL,
    &super::adafactor_norm::KERNEL,
    &super::adafactor_sums::KERNEL,
    &super::adafactor_vector_apply::KERNEL,
    &super::adafactor_vector_moments::KERNEL,
    &super::adamw::KERNEL,
    &super::adamw_bf16::KERNEL,
    &super::apollo_apply::KERNEL,
    &super::apollo_combine::KERNEL,
    &super::apollo_project::KERNEL,
    &super::cast_bf16::KERNEL,
    &super::global_norm::KERNEL,
    &super::sgd::KERNEL,
    &super::sgd_momentum::KERNEL,
    &super::sum_tree::KERNEL,
];
