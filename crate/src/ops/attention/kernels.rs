//! The declarations of the attention kernels.

use super::params::{BlockParams, HeadSumParams, PadParams, Params, WindowParams};
use super::twins::{
    backward_key_value_block_twin, backward_key_value_shared_twin, backward_key_value_twin,
    backward_query_block_twin, backward_query_twin, forward_block_twin, forward_twin,
    head_sum_twin,
};
use crate::gpu::Kernels;

/// Number of queries and of keys of a tile.
pub const TILE: usize = 32;

/// Number of columns of a row of sums that the threads of a tile can comfortably keep in registers.
pub const TILE_WIDTH: usize = 64;

/// Number of columns of a workgroup of the kernels by queries for wider heads.
pub const WIDE_TILE_WIDTH: usize = 128;

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[
    &FORWARD.all(),
    &FORWARD_TILE.all(),
    &FORWARD_TILE_WIDE.all(),
    &BACKWARD_QUERY.all(),
    &BACKWARD_QUERY_TILE.all(),
    &BACKWARD_QUERY_TILE_WIDE.all(),
    &BACKWARD_KEY_VALUE.all(),
    &BACKWARD_KEY_VALUE_TILE.all(),
    &HEAD_SUM.all(),
    &FORWARD_BLOCK.all(),
    &BACKWARD_QUERY_BLOCK.all(),
    &BACKWARD_KEY_VALUE_BLOCK.all(),
    &HEAD_PAD.all(),
    &WINDOW_STARTS.all(),
];

crate::kernel! {
    /// Computes `y = softmax(scale q kᵀ) v` and the log-sum-exp, one query per thread.
    pub FORWARD = "attention_forward" through "chunks/score_cap" [64], (q, k, v, starts) -> (y, stats), Params,
    twin forward_twin;

    /// [`FORWARD`] by tiles of 32 queries and 32 keys, for heads of at most [`TILE_WIDTH`] columns.
    pub FORWARD_TILE = "attention_forward_tile" as FORWARD;
    /// [`FORWARD_TILE`] for wider heads, with [`WIDE_TILE_WIDTH`] columns a workgroup.
    pub FORWARD_TILE_WIDE = "attention_forward_tile_wide" as FORWARD;
}
crate::kernel! {
    /// Computes `dq`, and `delta = dy y` into the stats, one query per thread.
    pub BACKWARD_QUERY = "attention_backward_query" through "chunks/score_cap" [64], (q, k, v, y, dy) -> (mut stats, dq), Params,
    twin backward_query_twin;

    /// [`BACKWARD_QUERY`] by tiles, for heads of at most [`TILE_WIDTH`] columns.
    pub BACKWARD_QUERY_TILE = "attention_backward_query_tile" as BACKWARD_QUERY;
    /// [`BACKWARD_QUERY_TILE`] for wider heads, with [`WIDE_TILE_WIDTH`] columns a workgroup.
    pub BACKWARD_QUERY_TILE_WIDE = "attention_backward_query_tile_wide" as BACKWARD_QUERY;
}
crate::kernel! {
    /// Computes `dk` and `dv`, one key per thread.
    pub BACKWARD_KEY_VALUE = "attention_backward_key_value" through "chunks/score_cap" [64], (q, k, v, dy, stats) -> (dk, dv), Params,
    twin backward_key_value_shared_twin
}
crate::kernel! {
    /// Computes `dk` and `dv` by query head, by tiles.
    pub BACKWARD_KEY_VALUE_TILE = "attention_backward_key_value_tile" through "chunks/score_cap" [64], (q, k, v, dy, stats) -> (dk, dv), Params,
    twin backward_key_value_twin
}
crate::kernel! {
    /// Adds gradients of keys and of values over the query heads that share them.
    pub HEAD_SUM = "head_sum" [64], (x, w) -> (y, z), HeadSumParams,
    twin head_sum_twin
}
crate::kernel! {
    /// Computes `y = softmax(scale q kᵀ) v` and the log-sum-exp, 8 queries per thread.
    pub FORWARD_BLOCK = "attention_forward_block" through "chunks/score_cap" [32], (q, k, v, starts) -> (mut y, mut stats), BlockParams,
    twin forward_block_twin
}
crate::kernel! {
    /// Computes `dq`, and `delta = dy y` into the stats, 8 queries per thread.
    pub BACKWARD_QUERY_BLOCK = "attention_backward_query_block" through "chunks/score_cap" [32], (q, k, v, y, dy) -> (mut stats, mut dq),
    BlockParams,
    twin backward_query_block_twin
}
crate::kernel! {
    /// Computes `dk` and `dv`, 8 keys per thread.
    pub BACKWARD_KEY_VALUE_BLOCK = "attention_backward_key_value_block" through "chunks/score_cap" [32], (q, k, v, dy, stats) -> (mut dk, mut dv),
    BlockParams,
    twin backward_key_value_block_twin
}
crate::kernel! {
    /// Widens heads with zeros, or cuts them back.
    pub HEAD_PAD = "head_pad" [64], (x) -> (y), PadParams,
    twin |[x], [y], p| {
        let (from, to) = (p.from_width, p.to_width);
        for i in 0..p.n * to {
            let column = i % to;
            y[i] = if column < from { x[i / to * from + column] } else { 0 };
        }
    }
}
crate::kernel! {
    /// Finds the first key of each query with a window.
    pub WINDOW_STARTS = "attention_window_starts" [64], (starts) -> (firsts), WindowParams,
    twin |[starts], [firsts], p| {
        for i in 0..p.n {
            let keys = p.offset + i % p.len + 1;
            let start = if p.documents { starts[i] } else { 0 };
            firsts[i] = start.max(keys.saturating_sub(p.window) as u32);
        }
    }
}
