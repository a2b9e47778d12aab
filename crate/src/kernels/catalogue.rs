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
];
