//! The number of bytes that the gradients of a product hold in addition to their results, by kind of adapter, for plans of a step's memory.

use super::SLICE;
use super::blocks::{blocked_input, blocked_weight, input_work, weight_work};

/// Returns the number of bytes that [`backward_input`](super::backward_input) of `dy [n, m]` and `w [m, k]` holds in addition to its result: slices
/// of the sum, which tiles have too, or by large blocks a transposed part of w.
pub(crate) fn input_work_bytes(software: bool, [n, m, k]: [usize; 3]) -> u64 {
    let slices = m.div_ceil(SLICE);
    let values = match (blocked_input(software, [n, m, k]), slices) {
        (true, _) => input_work([m, k]),
        (false, 0..=1) => 0,
        (false, _) => slices * n * k,
    };
    4 * values as u64
}

/// Returns the number of bytes that [`backward_weight`](super::backward_weight) of `dy [n, m]` and `x [n, k]` holds in addition to its result: by
/// large blocks, transposed parts of both.
pub(crate) fn weight_work_bytes(software: bool, [n, m, k]: [usize; 3]) -> u64 {
    if blocked_weight(software, [m, k]) {
        4 * weight_work([n, m, k]) as u64
    } else {
        0
    }
}
