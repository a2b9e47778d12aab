//! The bytes that the gradients of a product hold beside their results, by adapter, for plans of a step's memory.

use super::SLICE;
use super::blocks::{blocked_input, blocked_weight, input_work, weight_work};

/// Bytes beside the result of [`backward_input`](super::backward_input) of `dy [n, m]` and `w [m, k]`: slices of the sum, or by large blocks a
/// transposed part of w. Tiles add dx up in slices too.
pub fn input_work_bytes(software: bool, [n, m, k]: [usize; 3]) -> u64 {
    let slices = m.div_ceil(SLICE);
    let values = match (blocked_input(software, [n, m, k]), slices) {
        (true, _) => input_work([m, k]),
        (false, 0..=1) => 0,
        (false, _) => slices * n * k,
    };
    4 * values as u64
}

/// Bytes beside the result of [`backward_weight`](super::backward_weight) of `dy [n, m]` and `x [n, k]`: by large blocks, transposed parts of
/// both.
pub fn weight_work_bytes(software: bool, [n, m, k]: [usize; 3]) -> u64 {
    if blocked_weight(software, [m, k]) { 4 * weight_work([n, m, k]) as u64 } else { 0 }
}
