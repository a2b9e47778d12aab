//! The kernels of the delta rule.

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
    &DOTS.all(),
    &DECAY_BACKWARD.all(),
];

crate::kernel! {
    /// Computes the logarithms of the decays, and β.
    pub GATES = "delta_gates" [64], (a, b, log_rates, bias) -> (gates),
    /// Shape of the gates.
    struct GateParams {
        /// Number of rows.
        n: usize,
        /// M, the number of value heads.
        heads: usize,
    },
    twin twins::gates
}
crate::kernel! {
    /// Computes the gradients of what the decays are made of, that of A for each row.
    pub GATES_BACKWARD = "delta_gates_backward" [64], (a, log_rates, bias, dg) -> (da, drates), GateParams,
    twin twins::gates_backward
}
crate::kernel! {
    /// Computes queries and keys of length 1.
    pub UNIT = "delta_unit" [64], (x) -> (y, keys),
    /// Shape of the rows.
    struct UnitParams {
        /// Number of rows.
        n: usize,
        /// Width of a row of x.
        width: usize,
        /// G, the number of key heads.
        heads: usize,
        /// D, the width of a key.
        dim: usize,
    },
    twin twins::unit
}
crate::kernel! {
    /// Computes the gradient of the rows.
    pub UNIT_BACKWARD = "delta_unit_backward" [64], (x, dq, dk, dv) -> (dx),
    /// Shape of the rows.
    struct UnitBackwardParams {
        /// Number of rows.
        n: usize,
        /// G, the number of key heads.
        key_heads: usize,
        /// M, the number of value heads.
        heads: usize,
        /// D, the width of a key.
        key_dim: usize,
        /// E, the width of a value.
        value_dim: usize,
    },
    twin twins::unit_backward
}
crate::kernel! {
    /// Computes the decays within chunks.
    pub DECAY = "delta_decay" [64], (gates, starts) -> (sums, start, end),
    /// Shape of the gates.
    struct DecayParams {
        /// Number of rows.
        n: usize,
        /// T, the number of rows of a sequence.
        len: usize,
        /// M, the number of value heads.
        heads: usize,
        /// 1 if each row has a first row of its own, that of its document.
        documents: bool,
    },
    twin twins::decay
}
crate::kernel! {
    /// Computes products of the rows of a chunk.
    pub PAIRS = "delta_pairs" [64], (x, z, sums, gates, starts) -> (y),
    /// Shapes, and which rows are multiplied.
    struct PairParams {
        /// Number of rows.
        n: usize,
        /// T, the number of rows of a sequence.
        len: usize,
        /// M, the number of value heads.
        heads: usize,
        /// Width of a head.
        dim: usize,
        /// Number of heads of a row of x, and of z.
        own: usize,
        /// Width of a row of x.
        x_width: usize,
        /// Place of the first head in a row of x.
        x_first: usize,
        /// Width of a row of z.
        z_width: usize,
        /// 1 without the product of a row with itself.
        strict: bool,
        /// 1 if the products are multiplied by β.
        weighted: bool,
        /// 1 if each row has a first row of its own.
        documents: bool,
    },
    twin twins::pairs
}
crate::kernel! {
    /// Computes the inverse of 1 + A for each chunk, by column factors.
    pub INVERSE = "delta_inverse" [64], (pairs, gates, start) -> (yv, yk),
    /// Shape of the pairs.
    struct InverseParams {
        /// Number of rows.
        n: usize,
        /// T, the number of rows of a sequence.
        len: usize,
        /// M, the number of value heads.
        heads: usize,
    },
    twin twins::inverse
}
crate::kernel! {
    /// Mixes the rows of a chunk.
    pub MIX = "delta_mix" [64], (m, x) -> (mut y),
    /// Shapes, and how y is changed.
    struct MixParams {
        /// Number of rows.
        n: usize,
        /// T, the number of rows of a sequence.
        len: usize,
        /// M, the number of value heads.
        heads: usize,
        /// Width of a head.
        dim: usize,
        /// Width of a row of x.
        width: usize,
        /// Number of heads of a row of x.
        own: usize,
        /// Place of the first head in a row of x.
        first: usize,
        /// 1 if rows and columns of the weights change places.
        turned: bool,
        /// 1 if the result is added to y.
        add: bool,
        /// Factor of the result.
        factor: f32,
    },
    twin twins::mix
}
crate::kernel! {
    /// Reads the state of a chunk by its rows.
    pub READ = "delta_read" [64], (x, s, w) -> (mut y),
    /// Shapes, and how y is changed.
    struct ReadParams {
        /// Number of rows.
        n: usize,
        /// T, the number of rows of a sequence.
        len: usize,
        /// M, the number of value heads.
        heads: usize,
        /// Width of a head of y.
        dim: usize,
        /// Width of a head of x.
        inner: usize,
        /// Width of a row of x.
        width: usize,
        /// Number of heads of a row of x.
        own: usize,
        /// Place of the first head in a row of x.
        first: usize,
        /// Number of states that a sequence has in s.
        states: usize,
        /// 1 if rows and columns of the states change places.
        turned: bool,
        /// 1 if the result is added to y.
        add: bool,
        /// Factor of the result.
        factor: f32,
    },
    twin state_twins::read
}
crate::kernel! {
    /// Computes δ, and the states between chunks.
    pub SCAN = "delta_scan" [64], (w, keys, start, end, initial) -> (mut y, states),
    /// Shapes.
    struct ScanParams {
        /// Number of rows.
        n: usize,
        /// T, the number of rows of a sequence.
        len: usize,
        /// G, the number of key heads.
        key_heads: usize,
        /// M, the number of value heads.
        heads: usize,
        /// D, the width of a key.
        key_dim: usize,
        /// E, the width of a value.
        value_dim: usize,
        /// 1 if the first states are given.
        carried: bool,
    },
    twin state_twins::scan
}
crate::kernel! {
    /// Computes the gradients of δ, and of the states between chunks.
    pub SCAN_BACKWARD = "delta_scan_backward" [64], (w, qk, start, end, dout) -> (mut y, dstates), ScanParams,
    twin state_twins::scan_backward
}
crate::kernel! {
    /// Computes the products from which the gradients of the gates follow.
    pub DOTS = "delta_dots" [64], (o, dout, x, dv, delta) -> (y),
    /// Shape of the rows.
    struct DotParams {
        /// Number of rows.
        n: usize,
        /// M, the number of value heads.
        heads: usize,
        /// E, the width of a value.
        dim: usize,
        /// Width of a row of x.
        width: usize,
    },
    twin state_twins::dots
}
crate::kernel! {
    /// Computes the gradients of the decays' logarithms, and of b.
    pub DECAY_BACKWARD = "delta_decay_backward" [64], (dots, gates, starts, states, dstates) -> (dg, db),
    /// Shapes.
    struct DecayBackwardParams {
        /// Number of rows.
        n: usize,
        /// T, the number of rows of a sequence.
        len: usize,
        /// M, the number of value heads.
        heads: usize,
        /// Number of values of a state of a head.
        size: usize,
        /// 1 if each row has a first row of its own.
        documents: bool,
    },
    twin state_twins::decay_backward
}
