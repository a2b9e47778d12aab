//! The kernels of the delta rule.

use super::params::{
    DecayParams, DotParams, GateParams, InverseParams, MixParams, PairParams, ReadParams,
    ScanParams, ThroughParams, UnitBackwardParams, UnitParams, WrittenParams,
};
use super::{state_twins, twins};
use crate::gpu::Kernels;

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[
    &GATES.all(),
    &GATES_BACKWARD.all(),
    &UNIT.all(),
    &UNIT_BACKWARD.all(),
    &DECAY.all(),
    &PAIRS.all(),
    &INVERSE.all(),
    &MIX.all(),
    &READ.all(),
    &SCAN.all(),
    &SCAN_BACKWARD.all(),
    &DOT.all(),
    &WRITTEN.all(),
    &THROUGH.all(),
    &CROSS.all(),
];

crate::kernel! {
    /// Computes the logarithms of the decays, and β.
    pub GATES = "delta_gates" [64], (a, b, log_rates, bias) -> (gates), GateParams,
    twin twins::gates
}
crate::kernel! {
    /// Computes the gradients of what the decays are made of, that of A for each row.
    pub GATES_BACKWARD = "delta_gates_backward" [64], (a, log_rates, bias, dg) -> (da, drates), GateParams,
    twin twins::gates_backward
}
crate::kernel! {
    /// Computes queries and keys of length 1.
    pub UNIT = "delta_unit" [64], (x) -> (y, keys), UnitParams,
    twin twins::unit
}
crate::kernel! {
    /// Computes the gradient of the rows.
    pub UNIT_BACKWARD = "delta_unit_backward" [64], (x, dq, dk, dv) -> (dx), UnitBackwardParams,
    twin twins::unit_backward
}
crate::kernel! {
    /// Computes the decays within chunks.
    pub DECAY = "delta_decay" [64], (gates, starts) -> (sums, start, end), DecayParams,
    twin twins::decay
}
crate::kernel! {
    /// Computes products of the rows of a chunk.
    pub PAIRS = "delta_pairs" [64], (x, z, sums, gates, starts) -> (mut y), PairParams,
    twin twins::pairs
}
crate::kernel! {
    /// Computes the inverse of 1 + A for each chunk, by column factors.
    pub INVERSE = "delta_inverse" [64], (pairs, gates, start) -> (yv, yk), InverseParams,
    twin twins::inverse
}
crate::kernel! {
    /// Mixes the rows of a chunk.
    pub MIX = "delta_mix" [64], (m, x) -> (mut y), MixParams,
    twin twins::mix
}
crate::kernel! {
    /// Reads the state of a chunk by its rows.
    pub READ = "delta_read" [64], (x, s, w) -> (mut y), ReadParams,
    twin state_twins::read
}
crate::kernel! {
    /// Computes δ, and the states between chunks.
    pub SCAN = "delta_scan" [64], (w, keys, start, end, initial) -> (mut y, states), ScanParams,
    twin state_twins::scan
}
crate::kernel! {
    /// Computes the gradients of δ, and of the states between chunks.
    pub SCAN_BACKWARD = "delta_scan_backward" [64], (w, qk, start, end, dout) -> (mut y, dstates), ScanParams,
    twin state_twins::scan_backward
}
crate::kernel! {
    /// Computes products of the heads of two tensors.
    pub DOT = "delta_dot" [64], (a, b) -> (mut y), DotParams,
    twin twins::dot
}
crate::kernel! {
    /// Computes the gradient of b.
    pub WRITTEN = "delta_written" [64], (dv, delta, gates) -> (db), WrittenParams,
    twin twins::written
}
crate::kernel! {
    /// Computes the shares of states in the states after them.
    pub THROUGH = "delta_through" [64], (states, dstates, start) -> (y), ThroughParams,
    twin state_twins::through
}
crate::kernel! {
    /// Computes the gradients of the decays' logarithms.
    pub CROSS = "delta_cross" [64], (w, v, before, after, through) -> (dg), InverseParams,
    twin twins::cross
}
